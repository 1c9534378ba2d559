package cli

import (
	"bytes"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

func newPluginPackage(s *session) *cobra.Command {
	var out string
	var platforms, binaries []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "package [DIR]",
		Short: "Make a release of a plugin",
		Long: `Make a release of the plugin in a folder: an archive for each platform and
SHA256SUMS, in dist/. A plugin in Go is built for the platforms that its manifest
names as os/arch; others are given by --binary. The same source gives the same bytes.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exactly("a folder")(cmd, args)
			}
			return nil
		},
		RunE: command(func(_ *cobra.Command, args []string) error {
			dir := s.app.Cwd
			if len(args) == 1 {
				dir = s.abs(args[0])
			}
			if out == "" {
				out = filepath.Join(dir, "dist")
			}
			w := &works{s: s, dir: dir}
			defer w.close()
			return s.interruptible(func(ctx context.Context) error {
				return w.pack(ctx, s.abs(out), platforms, binaries, asJSON)
			})
		}),
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "the folder for the release (default DIR/dist)")
	cmd.Flags().StringArrayVar(&platforms, "platform", nil, "build for this `OS/ARCH` instead of those of the manifest")
	cmd.Flags().StringArrayVar(&binaries, "binary", nil, "an executable that is built already, as `OS/ARCH=PATH`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// works is a folder in which an author writes a plugin.
type works struct {
	s    *session
	dir  string
	temp string          // for what is built; made when needed
	link install.Request // of amux plugin dev
}

func (w *works) close() {
	if w.temp != "" {
		_ = os.RemoveAll(w.temp)
	}
}

// manifest reads the folder's manifest; unknown keys are warnings.
func (w *works) manifest() (*install.Manifest, []byte, error) {
	path := filepath.Join(w.dir, install.ManifestName)
	data, err := foreign.Read(path, foreign.Rule{Limit: maxConfigFile})
	if err != nil {
		return nil, nil, pluginapi.Errorf(pluginapi.CodePluginNotFound, "%s holds no %s", w.dir, install.ManifestName).
			WithHint("a plugin is begun by: amux plugin new NAME")
	}
	m, unknown, err := install.ParseManifest(path, data)
	for _, warning := range unknown {
		w.s.warnf("%s", warning)
	}
	return m, data, err
}

// build builds the folder's Go program for a platform.
func (w *works) build(ctx context.Context, m *install.Manifest, platform string) (string, error) {
	if w.temp == "" {
		temp, err := os.MkdirTemp("", "amux-plugin-*")
		if err != nil {
			return "", pluginapi.Errorf(pluginapi.CodeConfig, "%w", err)
		}
		w.temp = temp
	}
	goTool, err := lookGo(w.s)
	if err != nil {
		return "", err
	}
	goos, goarch, _ := strings.Cut(platform, "/")
	to := filepath.Join(w.temp, goos+"_"+goarch, install.ExecutableName(m.Name, platform))
	cmd := exec.CommandContext(ctx, goTool, "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid=", "-o", to, ".")
	cmd.Dir = w.dir
	cmd.Env = append(slices.Clone(w.s.app.Env), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	if text, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		_, _ = w.s.app.IO.Err.Write(text)
		return "", pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s cannot be built for %s: %s", w.dir, platform, firstLine(text, err)).
			WithHint("it must compile: go build %s", w.dir)
	}
	return to, nil
}

// lookGo finds the go command in the caller's PATH.
func lookGo(s *session) (string, error) {
	for _, dir := range filepath.SplitList(s.getenv("PATH")) {
		path := filepath.Join(dir, "go"+exeSuffix())
		if info, err := os.Stat(path); err == nil && filepath.IsAbs(dir) && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", pluginapi.Errorf(pluginapi.CodeValidation, "there is no go command in PATH").
		WithHint("install Go, or give what is built already: --binary %s/%s=PATH", runtime.GOOS, runtime.GOARCH)
}

func exeSuffix() string {
	if isWindows {
		return ".exe"
	}
	return ""
}

// firstLine is what a tool says first that is no heading.
func firstLine(text []byte, err error) string {
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return render.String(line)
		}
	}
	return err.Error()
}

// isGo reports whether the folder holds a Go program.
func (w *works) isGo() bool {
	sources, _ := filepath.Glob(filepath.Join(w.dir, "*.go"))
	return len(sources) > 0
}

// executables builds what is to be packed, or takes what is given.
func (w *works) executables(ctx context.Context, m *install.Manifest, platforms, given []string) (map[string]string, error) {
	found := map[string]string{}
	for _, g := range given {
		platform, path, ok := strings.Cut(g, "=")
		if !ok || path == "" || strings.Count(platform, "/") != 1 {
			return nil, usage("--binary %s: want OS/ARCH=PATH", g)
		}
		found[platform] = w.s.abs(path)
	}
	if len(found) > 0 && len(platforms) == 0 {
		return found, nil
	}
	if !w.isGo() {
		return nil, pluginapi.Errorf(pluginapi.CodeValidation, "%s holds no Go program to build", w.dir).
			WithHint("give what is built already: --binary %s=PATH", install.Platform())
	}
	if len(platforms) == 0 {
		named := map[string]bool{install.Platform(): true}
		for _, a := range m.Agents {
			for _, p := range a.Platforms {
				if strings.Contains(p, "/") {
					named[p] = true
				}
			}
		}
		platforms = slices.Sorted(maps.Keys(named))
	}
	for _, p := range platforms {
		if strings.Count(p, "/") != 1 {
			return nil, usage("--platform %s: want OS/ARCH", p)
		}
		path, err := w.build(ctx, m, p)
		if err != nil {
			return nil, err
		}
		found[p] = path
	}
	return found, nil
}

// describe asks an executable of this platform what it is.
func (w *works) describe(ctx context.Context, m *install.Manifest, executables map[string]string) ([]byte, error) {
	path := executables[install.Platform()]
	if path != "" {
		if info, err := os.Stat(path); err != nil {
			return nil, pluginapi.Errorf(pluginapi.CodePluginNotFound, "%s: there is no such file", path)
		} else if info.Mode()&0o111 == 0 && !isWindows {
			return nil, pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s is not executable", path).WithHint("chmod +x %s", path)
		}
		return w.runDescribe(ctx, path)
	}
	if !w.isGo() {
		return nil, pluginapi.Errorf(pluginapi.CodeValidation, "there is no executable for %s, which must say what the plugin is", install.Platform()).
			WithHint("give one more: --binary %s=PATH", install.Platform())
	}
	path, err := w.build(ctx, m, install.Platform())
	if err != nil {
		return nil, err
	}
	return w.runDescribe(ctx, path)
}

// runDescribe asks an executable what it is.
func (w *works) runDescribe(ctx context.Context, executable string) ([]byte, error) {
	supervision, err := host.Supervision(true)
	if err != nil {
		return nil, err
	}
	return install.RunDescribe(ctx, executable, supervision)
}

func (w *works) pack(ctx context.Context, out string, platforms, given []string, asJSON bool) error {
	m, manifest, err := w.manifest()
	if err != nil {
		return err
	}
	executables, err := w.executables(ctx, m, platforms, given)
	if err != nil {
		return err
	}
	description, err := w.describe(ctx, m, executables)
	if err != nil {
		return err
	}
	extra, err := install.Extras(w.dir)
	if err != nil {
		return err
	}
	p := install.Package{Manifest: manifest, Describe: bytes.TrimSpace(description), Binaries: executables, Extra: extra}
	p.Describe = append(p.Describe, '\n')
	m, sums, err := p.Write(out)
	if err != nil {
		return err
	}
	w.s.errf("packed %s %s for %s in %s", m.Name, m.Version, strings.Join(slices.Sorted(maps.Keys(executables)), ", "), out)
	w.s.errf("sign it:    amux plugin sign %s --key KEY", out)
	w.s.errf("install it: amux plugin install %s", out)
	if asJSON {
		return w.s.printJSON(struct {
			Name    string       `json:"name"`
			Version string       `json:"version"`
			Dir     string       `json:"dir"`
			SHA256  install.Sums `json:"sha256"`
		}{m.Name, m.Version, out, sums})
	}
	return nil
}
