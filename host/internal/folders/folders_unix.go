//go:build unix

package folders

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// checkPrivate refuses a folder for sockets that others can write or own.
func checkPrivate(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return Error("runtime folder", dir, err)
	}
	const way = "remove it, or set XDG_RUNTIME_DIR to a folder of yours with mode 0700"
	if !info.IsDir() {
		return pluginapi.Errorf(pluginapi.CodeConfig, "the runtime folder %s is no folder", dir).WithHint(way)
	}
	if uid, known := foreign.Owner(info); !known || uid != os.Getuid() || info.Mode().Perm()&0o077 != 0 {
		return pluginapi.Errorf(pluginapi.CodeConfig, "the runtime folder %s is not yours alone (owner %s, mode %s)",
			dir, foreign.UserName(uid), foreign.Mode(info)).WithHint(way)
	}
	return nil
}

// checkAround refuses a place for the runtime folder where others could put another in
// its place: a folder of theirs, or one that they may write, unless it is sticky.
func checkAround(dir string) error {
	parent := filepath.Dir(dir)
	info, err := os.Stat(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it is made, with mode 0700
	}
	if err != nil {
		return Error("runtime folder", parent, err)
	}
	uid, known := foreign.Owner(info)
	theirs := known && uid != 0 && uid != os.Getuid()
	open := info.Mode().Perm()&0o022 != 0 && !(info.Mode()&fs.ModeSticky != 0 && uid == 0)
	if theirs || open {
		return pluginapi.Errorf(pluginapi.CodeConfig, "the folder %s for sockets is not safe: others could replace what is in it (owner %s, mode %s)",
			parent, foreign.UserName(uid), foreign.Mode(info)).
			WithHint("set XDG_RUNTIME_DIR to a folder of yours with mode 0700, or unset it")
	}
	return nil
}

// Socket names the address of a run's shim. It is short: a socket's path has
// 108 bytes.
func Socket(dir, runID string) string {
	return filepath.Join(dir, strings.ToLower(runID)+".sock")
}

// Answers reports whether somebody listens on a socket.
func Answers(path string) bool {
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		conn.Close()
	}
	return err == nil
}
