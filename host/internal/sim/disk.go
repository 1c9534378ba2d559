//go:build unix

package sim

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/amux-dev/amux/internal/sys/rawio"
)

// stored is what is known of a file on the disk.
type stored struct {
	synced []byte // what a power cut leaves at least
	known  bool   // it was synced
	before []byte // what had the name before: a power cut may bring it back; nil: nothing had
}

// file is a file that a process has open. Its content is in a file of the real system,
// where all processes see it.
type file struct {
	*os.File
	p    *Proc
	s    *stored
	name string
	rand *rand.Rand
	slow bool
}

// Open is the disk as the process sees it.
func (p *Proc) Open(name string, flag int, perm fs.FileMode) (rawio.File, error) {
	gone := &fs.PathError{Op: "open", Path: name, Err: os.ErrClosed}
	rel, ok := strings.CutPrefix(name, p.Root+"/")
	switch p.step("open " + filepath.Base(rel)) {
	case dies:
		p.Kill()
		return nil, gone
	case isDead:
		return nil, gone
	}
	if !ok {
		return rawio.OpenFile(name, flag, perm) // a folder for the moment, as a replay has
	}
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	r := p.w.Rand(p.Name + " file " + rel)
	rel = filepath.Clean(rel)
	p.w.mu.Lock()
	s := p.w.disk[rel]
	if s == nil {
		s = &stored{}
		p.w.disk[rel] = s
	}
	p.w.mu.Unlock()
	return &file{f, p, s, filepath.Base(rel), r, flag == os.O_RDWR && filepath.Base(rel) == "journal"}, nil
}

// ReadAt is that of io.ReaderAt. The engine reads its journal with no mutex held.
func (f *file) ReadAt(b []byte, offset int64) (int, error) {
	if !f.p.Alive() {
		return 0, os.ErrClosed
	}
	if f.slow && f.rand.IntN(16) == 0 && !f.p.w.isQuiet() {
		f.p.w.Count("slow read")
		time.Sleep(time.Duration(f.rand.Int64N(int64(50 * time.Millisecond))))
	}
	return f.File.ReadAt(b, offset)
}

// WriteAt is that of io.WriterAt.
func (f *file) WriteAt(b []byte, offset int64) (int, error) {
	switch f.p.step("write " + f.name) {
	case dies:
		n := f.rand.IntN(len(b) + 1)
		if n > 0 && n < len(b) {
			f.p.w.Count("torn write")
		}
		_, _ = f.File.WriteAt(b[:n], offset)
		f.p.Kill()
		return 0, os.ErrClosed
	case isDead:
		return 0, os.ErrClosed
	}
	f.p.w.mu.Lock()
	full := f.p.w.full
	f.p.w.mu.Unlock()
	if full {
		if info, err := f.File.Stat(); err == nil && offset+int64(len(b)) > info.Size() {
			f.p.w.Count("full disk")
			n, _ := f.File.WriteAt(b[:f.rand.IntN(len(b)+1)], offset)
			return n, &fs.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
		}
	}
	return f.File.WriteAt(b, offset)
}

// Truncate cuts the file.
func (f *file) Truncate(size int64) error {
	switch f.p.step("truncate " + f.name) {
	case dies:
		f.p.Kill()
		return os.ErrClosed
	case isDead:
		return os.ErrClosed
	}
	return f.File.Truncate(size)
}

// Sync brings the file to the disk.
func (f *file) Sync() error {
	switch f.p.stepOnce("sync " + f.name) {
	case dies:
		f.p.Kill()
		return os.ErrClosed
	case isDead:
		return os.ErrClosed
	}
	info, err := f.File.Stat()
	if err != nil || info.IsDir() {
		f.s.known = err == nil
		return err
	}
	data := make([]byte, info.Size())
	if n, err := f.File.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	} else {
		data = data[:n]
	}
	f.p.w.mu.Lock()
	f.s.synced, f.s.known = data, true
	f.p.w.mu.Unlock()
	return nil
}

// Rename is that of the disk as the process sees it. Nobody waits until it is on the disk.
func (p *Proc) Rename(from, to string) error {
	gone := &os.LinkError{Op: "rename", Old: from, New: to, Err: os.ErrClosed}
	fate := p.step("rename to " + filepath.Base(to))
	if fate == isDead {
		return gone
	}
	if fate == dies && p.w.Rand(p.Name+" rename").IntN(2) == 0 { // else it dies behind it
		p.Kill()
		return gone
	}
	relFrom, okFrom := strings.CutPrefix(from, p.Root+"/")
	relTo, okTo := strings.CutPrefix(to, p.Root+"/")
	before, err := os.ReadFile(to)
	if err != nil || !okFrom || !okTo {
		return errors.Join(err, os.Rename(from, to))
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	p.w.mu.Lock()
	s := p.w.disk[relFrom]
	if s == nil {
		s = &stored{}
	}
	s.before = before
	p.w.disk[relTo] = s
	delete(p.w.disk, relFrom)
	p.w.mu.Unlock()
	if fate == dies {
		p.Kill()
		return gone
	}
	return nil
}

// PowerCut ends all processes at once. Of what was written and not synced some is lost:
// nothing, the end, or a part in the middle.
func (w *World) PowerCut() {
	if w.isQuiet() {
		return
	}
	w.Count("power cut")
	w.End()
	r := w.Rand("power cut")
	w.mu.Lock()
	defer w.mu.Unlock()
	runs, _ := filepath.Glob(w.Disk() + "/*/runs/*/run.json")
	for _, path := range runs {
		if rel, _ := filepath.Rel(w.Disk(), path); w.disk[rel] == nil && r.IntN(4) == 0 {
			w.faults["lost run.json"]++
			_ = os.Remove(path)
		}
	}
	for _, rel := range slices.Sorted(maps.Keys(w.disk)) {
		s := w.disk[rel]
		path := filepath.Join(w.Disk(), rel)
		now, err := os.ReadFile(path)
		if err != nil {
			continue // a folder, or what was deleted
		}
		kind, at, hole := r.IntN(4), r.Float64(), r.Float64()
		left := bytes.Clone(now)
		rest := len(now) - len(s.synced)
		switch {
		case filepath.Base(rel) == "exit": // its room is there from the start
			continue
		case s.before != nil && at < 0.5:
			w.faults["lost rename"]++
			left = s.before
		case kind == 0:
		case rest <= 0 || !bytes.HasPrefix(now, s.synced):
			left = s.synced
		case kind == 1:
			left = left[:len(s.synced)]
		default:
			left = left[:len(s.synced)+int(at*float64(rest+1))]
			if kind == 3 {
				from := len(s.synced) + int(hole*float64(len(left)-len(s.synced)))
				clear(left[from:min(len(left), from+512)])
			}
		}
		if !bytes.Equal(left, now) {
			w.faults["lost write"]++
		}
		if len(left) == 0 && !s.known {
			_ = os.Remove(path)
		} else if f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0); err == nil {
			_, _ = f.Write(left)
			f.Close()
		}
		s.synced, s.before = left, nil
	}
}
