package registry

import (
	"os"
	"syscall"
)

func identify(f *os.File) (identity, error) {
	var st syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &st); err != nil {
		return identity{}, err
	}
	return identity{
		Dev: uint64(st.Dev), Ino: st.Ino, Size: st.Size,
		Mtime: st.Mtimespec.Nano(), Ctime: st.Ctimespec.Nano(),
	}, nil
}
