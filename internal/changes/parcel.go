package changes

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/amux-dev/amux/internal/git"
	"github.com/amux-dev/amux/internal/sys/printable"
)

// A run at another place is recorded there, and its record comes here in a parcel: a line of JSON,
// and behind it a pack for each work tree, of what tells the start from the end.

// MostParcel bounds a parcel. What would be larger is not sent, and the record says so.
const MostParcel = 64 << 20

const (
	mostLine = 1 << 20
	mostRoot = 4096
)

// parcel is the line. The first part is of the work tree, the others are of repositories in it.
type parcel struct {
	Version int    `json:"version"` // 1
	Parts   []part `json:"parts"`
}

type part struct {
	Record Record `json:"record"`
	Pack   int64  `json:"pack"` // bytes; 0: there is none
}

// ErrElsewhere is the error of what needs the files of a run that worked at another place.
var ErrElsewhere = errors.New("the files are at another place")

// SendEnd takes the tree of the end, unless it was taken, and writes a parcel. It writes nothing
// where nothing is recorded.
func (s *Set) SendEnd(ctx context.Context, w io.Writer) error {
	s.End(ctx)
	return s.send(ctx, w, nil)
}

// SendNow writes a parcel with the files as they are for those of the end. temp is a folder to
// work in.
func (s *Set) SendNow(ctx context.Context, w io.Writer, temp string) error {
	d, err := s.Open(ctx, true, temp)
	if err != nil {
		return err
	}
	defer d.Close()
	return s.send(ctx, w, d)
}

// send writes a parcel of d, or of what is recorded.
func (s *Set) send(ctx context.Context, w io.Writer, d *Diff) error {
	ctx, cancel := s.limit(ctx, endTime)
	defer cancel()
	recorded, err := s.Record()
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if d == nil && recorded.StartTree != "" && recorded.EndTree != "" {
		if d, err = s.Open(ctx, false, ""); err != nil {
			return err
		}
		defer d.Close()
	}
	sent := parcel{Version: 1, Parts: []part{{Record: recorded}}}
	packs, err := os.CreateTemp(s.dir, "sent-")
	if err != nil {
		return err
	}
	defer os.Remove(packs.Name())
	defer packs.Close()
	if d != nil {
		sent.Parts[0].Record.EndTree = d.Tree()
		out := &bounded{w: packs, left: MostParcel}
		for i, of := range append([]*Diff{d}, d.inner...) {
			if i > 0 {
				record := of.Record
				record.EndTree = of.Tree()
				sent.Parts = append(sent.Parts, part{Record: record})
			}
			before := out.left
			if err = of.git.Pack(ctx, of.StartTree, of.Tree(), out); err != nil {
				break
			}
			sent.Parts[i].Pack = before - out.left
		}
		if out.full || err != nil {
			why := fmt.Sprintf("what was changed takes more than %d MiB, which is not sent", MostParcel>>20)
			if !out.full {
				why = reason(ctx, err)
			}
			recorded.StartTree, recorded.EndTree, recorded.Figures, recorded.Reason = "", "", Figures{}, why
			sent.Parts = []part{{Record: recorded}}
		}
	}
	line, err := json.Marshal(sent)
	if err != nil {
		return err
	}
	if _, err := w.Write(append(line, '\n')); err != nil {
		return err
	}
	size := int64(0)
	for _, p := range sent.Parts {
		size += p.Pack
	}
	if _, err := packs.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = io.CopyN(w, packs, size)
	return err
}

// bounded takes so many bytes, and then fails.
type bounded struct {
	w    io.Writer
	left int64
	full bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if int64(len(p)) > b.left {
		b.full = true
		return 0, io.ErrShortWrite
	}
	b.left -= int64(len(p))
	return b.w.Write(p)
}

// StartElsewhere notes what another place has recorded of a run's start: the JSON of a Record.
func (s *Set) StartElsewhere(place string, data []byte) error {
	var r Record
	if len(data) > mostLine || json.Unmarshal(data, &r) != nil {
		return errors.New("what it says of the start makes no sense")
	}
	if err := r.arrive(place); err != nil {
		return err
	}
	r.EndTree, r.Taken, r.Figures = "", nil, Figures{}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	return s.write(r)
}

// arrive checks a record from another place.
func (r *Record) arrive(place string) error {
	for _, id := range []string{r.StartTree, r.EndTree} {
		if id != "" && !git.IsID(id) {
			return fmt.Errorf("%.80q is no tree", id)
		}
	}
	if len(r.Root) > mostRoot || !path.IsAbs(r.Root) || path.Clean(r.Root) != r.Root || !utf8.ValidString(r.Root) {
		return fmt.Errorf("%.80q is no folder", r.Root)
	}
	r.Place, r.LeftOut = place, max(r.LeftOut, 0)
	r.Reason = printable.Line(r.Reason[:min(len(r.Reason), mostRoot)])
	return nil
}

// Expected reports whether a run worked at another place and nothing was received from there.
func (s *Set) Expected() bool {
	r, err := s.Record()
	return err == nil && r.Place != "" && r.StartTree != "" && r.EndTree == "" && r.Reason == ""
}

// Missed notes why nothing was received of a run that worked at another place.
func (s *Set) Missed(why error) {
	r, err := s.Record()
	if err != nil {
		return
	}
	r.StartTree, r.EndTree, r.Figures, r.Reason = "", "", Figures{}, git.OneLine(why.Error())
	_ = s.write(r) // without it the start alone is known
}

// empty leaves nothing in the folder but the record, so that whoever looks meanwhile finds what is
// known of the start.
func (s *Set) empty() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(s.dir)
	for _, e := range entries {
		if e.Name() != recordName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(s.dir, e.Name())))
		}
	}
	return err
}

// Receive makes the set of a parcel from another place, which may be anything. After an error
// nothing of it is left, and what was recorded of the start says why.
func (s *Set) Receive(ctx context.Context, from io.Reader, place string) (retErr error) {
	ctx, cancel := s.limit(ctx, endTime)
	defer cancel()
	known, unknown := s.Record()
	defer func() {
		if retErr == nil {
			return
		}
		if unknown != nil {
			_ = os.RemoveAll(s.dir)
			return
		}
		if s.empty() == nil && s.write(known) == nil {
			s.Missed(retErr)
		}
	}()
	in := bufio.NewReaderSize(io.LimitReader(from, mostLine+MostParcel), 64<<10)
	line, err := readLine(in)
	if err != nil {
		return err
	}
	var sent parcel
	if json.Unmarshal(line, &sent) != nil || sent.Version != 1 || len(sent.Parts) == 0 || len(sent.Parts) > 1+git.MostNested {
		return errors.New("what it sent makes no sense")
	}
	if err := s.empty(); err != nil {
		return err
	}
	var sum Figures
	for i := len(sent.Parts) - 1; i >= 0; i-- {
		p := &sent.Parts[i]
		if err := p.Record.arrive(place); err != nil {
			return err
		}
		if i > 0 && !strings.HasPrefix(p.Record.Root, strings.TrimSuffix(sent.Parts[0].Record.Root, "/")+"/") {
			return fmt.Errorf("%.80q is not in the work tree", p.Record.Root)
		}
	}
	for i := range sent.Parts {
		p, to := &sent.Parts[i], s
		if i > 0 {
			to = s.inner(i - 1)
		}
		figures, err := to.hold(ctx, &p.Record, io.LimitReader(in, p.Pack))
		if err != nil {
			return err
		}
		sum = sum.Plus(figures)
	}
	if whole := &sent.Parts[0].Record; whole.EndTree != "" {
		whole.Figures = sum
		return s.write(*whole)
	}
	return nil
}

// OpenParcel opens what a parcel brings, in a folder that is made in temp for that, and removed by
// Close. env is the environment that git is found in.
func OpenParcel(ctx context.Context, sent []byte, place, temp string, env []string) (*Diff, error) {
	if len(sent) == 0 {
		return nil, ErrNone
	}
	dir, err := os.MkdirTemp(temp, "agent-mux-replay-")
	if err != nil {
		return nil, err
	}
	set := New(dir, env)
	var d *Diff
	if err = set.Receive(ctx, bytes.NewReader(sent), place); err == nil {
		d, err = set.Open(ctx, false, temp)
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	d.temp = dir
	return d, nil
}

// hold takes one part of a parcel, and writes its record.
func (s *Set) hold(ctx context.Context, r *Record, pack io.Reader) (Figures, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return Figures{}, err
	}
	if r.StartTree == "" || r.EndTree == "" {
		r.EndTree, r.Figures = "", Figures{}
		return Figures{}, s.write(*r)
	}
	if err := git.Hold(s.dir, len(r.StartTree) == sha256Digits); err != nil {
		return Figures{}, err
	}
	g, err := s.open(s.dir)
	if err != nil {
		return Figures{}, err
	}
	if err := g.Unpack(ctx, pack); err != nil {
		return Figures{}, err
	}
	files, err := g.Files(ctx, r.StartTree, r.EndTree)
	if err != nil {
		return Figures{}, err
	}
	r.Figures = git.FiguresOf(files)
	if r.Taken == nil {
		now := time.Now().UTC()
		r.Taken = &now
	}
	return r.Figures, s.write(*r)
}

// sha256Digits is how long the id of a tree is in a repository of that format.
const sha256Digits = 64

// readLine reads the first line of a parcel.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		more, err := in.ReadSlice('\n')
		if line = append(line, more...); len(line) > mostLine {
			return nil, errors.New("what it sent begins with no line")
		}
		if err == nil || !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
