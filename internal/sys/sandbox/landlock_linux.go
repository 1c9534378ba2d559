package sandbox

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// landlockABI is the version of Landlock that the kernel offers. It is 0 where the
// kernel is older than 5.13, was built or started without, or a filter of system
// calls hides it.
func landlockABI() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// signalsScoped reports whether signals can be kept inside (version 6), and without
// keeping them from the other threads of the same process, as the first kernels did
// that could. The thread that forks is one of the host's, and its runtime signals
// threads.
func signalsScoped(abi int) bool {
	if abi < 6 {
		return false
	}
	const betweenThreads = 1 << 1
	errata, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_ERRATA)
	return errno == 0 && errata&betweenThreads != 0
}

// changes are the rights to change files that a version knows. Version 4 added the
// network's, which are left alone, as are reading and executing; 7 is about logs, 8
// about threads, 9 about connecting to sockets.
func changes(abi int) uint64 {
	rights := uint64(unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM)
	if abi >= 2 {
		// Links and renames from folder to folder. Version 1 forbids them everywhere.
		rights |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		// Before, truncate(2) empties what cannot be opened for writing.
		rights |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 5 {
		rights |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return rights
}

// landlock lets this thread change files below dir only. /dev/null takes what
// anybody writes.
func landlock(abi int, dir string) error {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: changes(abi)}
	if signalsScoped(abi) {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL
	}
	// Older kernels take a longer structure whose rest is zero.
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("landlock: make rules: %w", errno)
	}
	ruleset := int(fd)
	defer unix.Close(ruleset)
	onFile := attr.Handled_access_fs & (unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV)
	for _, rule := range []struct {
		path   string
		rights uint64
	}{{dir, attr.Handled_access_fs}, {"/dev/null", onFile}} {
		if err := allow(ruleset, rule.path, rule.rights); err != nil {
			return fmt.Errorf("landlock: allow %s: %w", rule.path, err)
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return fmt.Errorf("landlock: %w", errno)
	}
	return nil
}

func allow(ruleset int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
