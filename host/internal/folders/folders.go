// Package folders makes the folders that a host works in, refuses those that are not
// safe, and says of one that cannot be written why and what to do. It names what lies in
// them: the addresses of shims.
package folders

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// Config makes the configuration folder. It refuses one that others own or may write to.
func Config(dir string) error {
	if err := foreign.CheckFolder(dir); err != nil {
		return pluginapi.Errorf(pluginapi.CodeConfig, "the configuration folder %s is not used: %w", dir, fault.Plain(err)).
			WithHint("%s", foreign.Fix(err))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Error("config folder", dir, err)
	}
	return nil
}

// DefaultRuntime is the folder for sockets where the user's is xdg. It is short: a
// socket's path has 108 bytes.
func DefaultRuntime(xdg string) string {
	if filepath.IsAbs(xdg) && len(xdg) < 40 {
		return filepath.Join(xdg, "amux")
	}
	if runtime.GOOS == "windows" {
		return filepath.Join(os.TempDir(), "amux")
	}
	return "/tmp/amux-" + strconv.Itoa(os.Getuid())
}

// IsOurs reports whether a file belongs to this user, as far as the system says.
func IsOurs(info os.FileInfo) bool {
	uid, known := foreign.Owner(info)
	return !known || uid == os.Getuid()
}

// Runtime makes a folder for sockets. It refuses one that is not the user's alone, or
// that lies where others could replace it.
func Runtime(dir string) error {
	if err := checkAround(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Error("runtime folder", dir, err)
	}
	return checkPrivate(dir)
}

// Error is the error of a folder that cannot be written. what says which it is, and so
// what may be done.
func Error(what, dir string, err error) error {
	err = fault.Plain(err)
	code, hint := pluginapi.CodeConfig, "choose another by --config-dir or AGENT_MUX_CONFIG_DIR"
	switch what {
	case "runtime folder":
		hint = "set XDG_RUNTIME_DIR to a folder of yours"
	case "temp folder":
		hint = "set TMPDIR to a folder that exists and is yours"
	}
	if fault.Full(err) {
		code = pluginapi.CodeDiskFull
	}
	if why, way := fault.Limit(err); why != "" {
		e := pluginapi.Errorf(code, "the %s %s cannot be written: %s", what, dir, why).WithHint("%s", way)
		e.Err = err
		return e
	}
	return pluginapi.Errorf(code, "the %s %s cannot be written: %w", what, dir, err).WithHint("%s", hint)
}
