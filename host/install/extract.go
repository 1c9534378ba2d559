package install

import (
	"archive/tar"
	"archive/zip"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
)

// Extract unpacks the archive at path below root. name says the format by its ending:
// .tar.gz, .tgz, .tar.bz2, .tbz2 or .zip. It holds archives to the rules for plugins: no
// links, no devices, no names that lead out or that some system does not allow, at most
// 4096 files and 512 MiB. Files get 0o444, those that the archive lets somebody run
// 0o555. What was written before an error stays; the caller removes root.
func Extract(path, name string, root *os.Root) error {
	f, err := openPack(path)
	if err != nil {
		return err
	}
	defer f.Close()
	x := &extraction{root: root, names: newNames(), buffer: make([]byte, 256<<10), left: maxUnpacked}
	switch {
	case hasEnding(name, ".tar.gz", ".tgz"):
		r, err := gzip.NewReader(f)
		if err != nil {
			return invalidArchive("it is no gzip file: %v", err)
		}
		return x.tar(r)
	case hasEnding(name, ".tar.bz2", ".tbz2"):
		return x.tar(bzip2.NewReader(f))
	case hasEnding(name, ".zip"):
		info, err := f.Stat()
		if err != nil {
			return WriteError(err)
		}
		r, err := zip.NewReader(f, info.Size())
		if err != nil {
			return invalidArchive("it is no zip file: %v", err)
		}
		return x.zip(r)
	}
	return invalidArchive("its format is unknown")
}

func hasEnding(name string, endings ...string) bool {
	for _, ending := range endings {
		if strings.HasSuffix(strings.ToLower(name), ending) {
			return true
		}
	}
	return false
}

// extraction is one archive that is being unpacked.
type extraction struct {
	root   *os.Root
	names  *names
	buffer []byte
	left   int64 // bytes that may still come
}

func (x *extraction) tar(r io.Reader) error {
	plain := &counted{r: r, left: maxUnpacked + maxFiles*4<<10}
	archive := tar.NewReader(plain)
	for {
		header, err := archive.Next()
		switch {
		case err == io.EOF:
			// To the end of the stream: its checksum covers what tar has not read.
			if _, err := io.Copy(io.Discard, plain); err != nil {
				return readArchive(plain, err)
			}
			return nil
		case err != nil:
			return readArchive(plain, err)
		}
		mode := header.FileInfo().Mode()
		switch header.Typeflag {
		case tar.TypeReg, tar.TypeDir:
		case tar.TypeXGlobalHeader: // git archive writes one
			continue
		case tar.TypeLink:
			mode |= fs.ModeSymlink
		}
		if err := x.entry(header.Name, mode, header.Size, func() (io.ReadCloser, error) { return io.NopCloser(archive), nil }); err != nil {
			return readArchive(plain, err)
		}
	}
}

func (x *extraction) zip(r *zip.Reader) error {
	if len(r.File) > maxFiles {
		return invalidArchive("it holds more than %d files", maxFiles)
	}
	for _, f := range r.File {
		if f.UncompressedSize64 > maxUnpacked {
			return tooLarge()
		}
		if err := x.entry(f.Name, f.Mode(), int64(f.UncompressedSize64), f.Open); err != nil {
			return err
		}
	}
	return nil
}

// entry writes one file of an archive.
func (x *extraction) entry(name string, mode fs.FileMode, size int64, open func() (io.ReadCloser, error)) error {
	name = strings.TrimPrefix(name, "./")
	switch {
	case mode&fs.ModeSymlink != 0:
		return invalidArchive("%.120q is a link", name)
	case mode&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0:
		return invalidArchive("%.120q has the setuid, setgid or sticky bit", name)
	case mode.IsDir():
		if name = strings.TrimSuffix(name, "/"); name == "" || name == "." {
			return nil
		}
		return x.names.addFolder(name) // made when it holds something
	case !mode.IsRegular():
		return invalidArchive("%.120q is a device", name)
	}
	if err := x.names.add(name); err != nil {
		return err
	}
	if size < 0 || size > x.left {
		return tooLarge()
	}
	r, err := open()
	if err != nil {
		return invalidArchive("it is damaged: %v", err)
	}
	defer r.Close()
	_, n, err := writeFile(x.root, name, r, size, x.buffer, func() {})
	x.left -= n
	if err != nil {
		return err
	}
	allowed := fs.FileMode(0o444)
	if mode&0o111 != 0 {
		allowed = 0o555
	}
	return WriteError(x.root.Chmod(name, allowed))
}

// readArchive is the error of reading an archive whose plain size is bounded.
func readArchive(plain *counted, err error) error {
	if plain.left < 0 {
		return tooLarge()
	}
	return readError(err)
}

// invalidArchive is invalid for an archive that may be no plugin's.
func invalidArchive(format string, args ...any) error {
	err := invalid(format, args...)
	if e, ok := errors.AsType[*pluginapi.Error](err); ok {
		e.Hint = "report it to the author"
	}
	return err
}
