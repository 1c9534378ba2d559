package host

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/amux-dev/amux/internal/command"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// findInstallation fills in the shim and the folder of bundled plugins, where the caller
// names none: those beside this program, or else those beside the amux on PATH. The amux
// of PATH is somebody else's choice, so nobody but the user and root may be able to
// replace what is taken from there.
func findInstallation(o *Options) error {
	if o.BundledDir != "" && o.ShimPath != "" {
		return nil
	}
	dir, err := installation(o.Env)
	if err != nil {
		return err
	}
	if o.BundledDir == "" {
		o.BundledDir = filepath.Join(dir, "plugins")
	}
	if o.ShimPath == "" {
		o.ShimPath = filepath.Join(dir, "amux-shim"+exeSuffix())
	}
	return nil
}

// installation is the folder that has amux-shim.
func installation(env []string) (string, error) {
	shimName := "amux-shim" + exeSuffix()
	self, err := os.Executable()
	if err != nil {
		return "", pluginapi.Errorf(pluginapi.CodeInternal, "find the executable: %w", err)
	}
	beside := filepath.Dir(resolved(self))
	if _, err := os.Stat(filepath.Join(beside, shimName)); err == nil {
		return beside, nil
	}
	const hint = "install amux, add its folder to PATH, or set Options.ShimPath and Options.BundledDir"
	amux := command.Look("amux", env, "")
	if !filepath.IsAbs(amux) { // what a relative entry of PATH finds depends on the folder
		return "", pluginapi.Errorf(pluginapi.CodeConfig, "amux is not installed: no %s in %s, and no amux on PATH", shimName, beside).WithHint(hint)
	}
	dir := filepath.Dir(resolved(amux))
	if _, err := os.Stat(filepath.Join(dir, shimName)); err != nil {
		return "", pluginapi.Errorf(pluginapi.CodeConfig, "amux is not installed whole: no %s in %s, nor in %s, where %s is", shimName, beside, dir, amux).WithHint(hint)
	}
	if err := checkInstallation(dir, shimName); err != nil {
		e := pluginapi.Errorf(pluginapi.CodePluginUntrusted, "the amux on PATH is not used: %s: %w", pathOf(err, dir), fault.Plain(err))
		if fix := foreign.Fix(err); fix != "" {
			return "", e.WithHint("%s; or set Options.ShimPath and Options.BundledDir", fix)
		}
		return "", e.WithHint(hint)
	}
	return dir, nil
}

// checkInstallation refuses a folder, a shim or a folder of plugins that others than the
// user and root can change.
func checkInstallation(dir, shimName string) error {
	for _, folder := range []string{dir, filepath.Join(dir, "plugins")} {
		if err := foreign.CheckFolder(folder); err != nil {
			return err
		}
	}
	f, err := foreign.Open(filepath.Join(dir, shimName), foreign.Rule{Private: true})
	if err != nil {
		return err
	}
	return f.Close()
}

// pathOf is the path that an error is about.
func pathOf(err error, other string) string {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Path
	}
	return other
}

// resolved is a path without symbolic links, if that can be told.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
