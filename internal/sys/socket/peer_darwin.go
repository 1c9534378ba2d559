package socket

import "golang.org/x/sys/unix"

// peer is the user at the other end of a socket; -1 if that cannot be told.
func peer(fd int) int {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return -1
	}
	return int(cred.Uid)
}
