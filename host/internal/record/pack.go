package record

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/sys/rawio"
)

// Packer packs journals. The zero value does it with the files of this machine.
type Packer struct {
	Open   rawio.Opener
	Rename func(from, to string) error
	Least  int64 // the smallest journal that is worth it; 0: PackLeast
}

// PackLeast is a few blocks of a file system: of less little is saved.
const PackLeast = 64 << 10

// packing ends the name of a file that is being written.
const packing = ".packing"

// Pack puts a packed journal in the place of the one at path, whose run has ended and which the
// caller has locked. It returns by how much it is smaller: by nothing where it is packed already,
// is not whole, or would not be smaller. Whatever interrupts it, one of the two is there.
func (p Packer) Pack(ctx context.Context, path string) (saved int64, retErr error) {
	src, err := Open(path)
	if err != nil {
		if _, damaged := errors.AsType[*journal.Damage](err); damaged {
			err = nil
		}
		return 0, err
	}
	defer src.Close()
	if src.Packed != nil || src.Bytes < cmp.Or(p.Least, PackLeast) {
		return 0, nil
	}
	open, rename := p.Open, p.Rename
	if open == nil {
		open, rename = rawio.OpenFile, os.Rename
	}
	name := path + packing
	_ = os.Remove(name) // of one who was killed
	to, err := open(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() {
		_ = to.Close()
		if saved == 0 || retErr != nil {
			_ = os.Remove(name)
		}
	}()
	w := bufio.NewWriterSize(io.NewOffsetWriter(to, 0), 256<<10)
	err = journal.Pack(w, patient{ctx, src}, src.Bytes, journal.PieceSize)
	if _, damaged := errors.AsType[*journal.Damage](err); damaged || errors.Is(err, journal.ErrTorn) || errors.Is(err, journal.ErrFormat) {
		return 0, nil
	}
	if err := errors.Join(err, w.Flush(), to.Sync()); err != nil {
		return 0, err
	}
	info, err := to.Stat()
	if err != nil || info.Size() >= src.Bytes {
		return 0, err
	}
	packed, err := journal.OpenPacked(to, info.Size())
	if err != nil {
		return 0, err
	}
	if err := same(ctx, src, &File{ReaderAt: packed, Bytes: packed.Size()}); err != nil {
		return 0, err
	}
	_, _ = src.Close(), to.Close() // Windows moves no open file, and over none
	if err := rename(name, path); err != nil {
		return 0, err
	}
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
	return src.Bytes - info.Size(), nil
}

// errDiffers says that a packed journal is not the one that it was made of.
var errDiffers = errors.New("what was packed is not what is read again")

// same compares two journals.
func same(ctx context.Context, a, b *File) error {
	if a.Bytes != b.Bytes {
		return errDiffers
	}
	const piece = 256 << 10
	x, y := make([]byte, piece), make([]byte, piece)
	for at := int64(0); at < a.Bytes; at += piece {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(piece, a.Bytes-at)
		_, errA := a.ReadAt(x[:n], at)
		_, errB := b.ReadAt(y[:n], at)
		for _, err := range []error{errA, errB} {
			if err != nil && err != io.EOF {
				return err
			}
		}
		if !bytes.Equal(x[:n], y[:n]) {
			return errDiffers
		}
	}
	return nil
}

// patient reads until a context ends.
type patient struct {
	ctx context.Context
	io.ReaderAt
}

func (p patient) ReadAt(b []byte, offset int64) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	return p.ReaderAt.ReadAt(b, offset)
}
