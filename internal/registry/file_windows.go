package registry

import (
	"os"
	"syscall"
	"unsafe"
)

const exeSuffix = ".exe"

// mayExecute is true: Windows knows programs by their names.
func mayExecute(os.FileInfo) bool { return true }

// replace renames a file over another. One that is running cannot be replaced
// but can be renamed, so it makes way.
func replace(from, to string) error {
	err := os.Rename(from, to)
	if err == nil {
		return nil
	}
	aside := from + ".old"
	if os.Rename(to, aside) != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		_ = os.Rename(aside, to)
		return err
	}
	_ = os.Remove(aside) // stays while it runs
	return nil
}

var getFileInformationByHandleEx = syscall.NewLazyDLL("kernel32.dll").NewProc("GetFileInformationByHandleEx")

// fileBasicInfo is FILE_BASIC_INFO; times are in units of 100 ns.
type fileBasicInfo struct {
	creation, lastAccess, lastWrite, change int64
	attributes                              uint32
	_                                       uint32
}

func identify(f *os.File) (identity, error) {
	handle := syscall.Handle(f.Fd())
	var info syscall.ByHandleFileInformation
	if err := syscall.GetFileInformationByHandle(handle, &info); err != nil {
		return identity{}, err
	}
	var basic fileBasicInfo
	const classFileBasicInfo = 0
	ok, _, err := getFileInformationByHandleEx.Call(uintptr(handle), classFileBasicInfo,
		uintptr(unsafe.Pointer(&basic)), unsafe.Sizeof(basic))
	if ok == 0 {
		return identity{}, err
	}
	return identity{
		Dev:   uint64(info.VolumeSerialNumber),
		Ino:   uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow),
		Size:  int64(info.FileSizeHigh)<<32 | int64(info.FileSizeLow),
		Mtime: basic.lastWrite * 100,
		Ctime: basic.change * 100,
	}, nil
}
