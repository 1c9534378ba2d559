//go:build unix

package foreign

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

const (
	nonblock = syscall.O_NONBLOCK
	nofollow = syscall.O_NOFOLLOW
)

// Owner is the user whom a file belongs to. known is false on Windows.
func Owner(info fs.FileInfo) (uid int, known bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}

// UserName names a user for people: "uid 1001".
func UserName(uid int) string {
	if uid == 0 {
		return "root"
	}
	return "uid " + strconv.Itoa(uid)
}

// Mode is the permission bits of a file as chmod writes them, with the sticky bit.
func Mode(info fs.FileInfo) string {
	mode := uint32(info.Mode().Perm())
	if info.Mode()&fs.ModeSticky != 0 {
		mode |= 0o1000
	}
	return fmt.Sprintf("%04o", mode)
}

func checkOwner(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if uid := int(stat.Uid); uid != 0 && uid != os.Getuid() {
		return refuse(path, "make it yours (chown), or use another",
			"it belongs to %s with mode %s, and you are %s", UserName(uid), Mode(info), UserName(os.Getuid()))
	}
	// A group that has the number of its user is the user's own on most systems.
	others := fs.FileMode(0o022)
	if int(stat.Gid) == os.Getuid() {
		others = 0o002
	}
	if info.Mode().Perm()&others != 0 {
		return refuse(path, "chmod go-w "+path, "other users may write it (owner %s, mode %s)", UserName(int(stat.Uid)), Mode(info))
	}
	return nil
}
