package line

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/amux-dev/amux/internal/sys/foreign"
)

const (
	// mostPrompts and mostBytes bound the history.
	mostPrompts = 1000
	mostBytes   = 1 << 20
	// mostFile bounds the file: it is shortened when it has grown to this.
	mostFile = 2 * mostBytes
	// lockTime is how long a terminal waits for another one that writes the history.
	lockTime = time.Second
)

// History is a file of prompts, one JSON string a line, that all terminals of a user share.
// Each adds to it under a lock, so that none loses what another has added.
type History struct {
	path string

	keep bool // prompts are written

	mu  sync.Mutex
	own []string // those that were not
}

// NewHistory returns the history in a folder. It reads nothing yet. With keep, prompts are
// added to the file, else they are known until the process ends.
func NewHistory(dir string, keep bool) *History {
	return &History{path: filepath.Join(dir, "prompts.jsonl"), keep: keep}
}

// Prompts returns the last prompts, the newest last. A file that is not the user's own, or
// is too large, counts as empty.
func (h *History) Prompts() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	data, _ := foreign.Read(h.path, foreign.Rule{Limit: 2 * mostFile, NoLink: true, Private: true}) // nothing is lost without it
	return newest(append(parse(data), h.own...))
}

func parse(data []byte) (all []string) {
	for line := range bytes.Lines(data) {
		var text string
		if json.Unmarshal(line, &text) == nil && text != "" && (len(all) == 0 || all[len(all)-1] != text) {
			all = append(all, text)
		}
	}
	return all
}

// newest are the last prompts that fit into the bounds.
func newest(all []string) []string {
	size, first := 0, len(all)
	for first > 0 && len(all)-first < mostPrompts {
		if size += len(all[first-1]); size > mostBytes {
			break
		}
		first--
	}
	return all[first:]
}

// Add adds a prompt.
func (h *History) Add(text string) error {
	if text == "" || len(text) > mostBytes/2 {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var err error
	if h.keep {
		if err = h.append(text); err == nil {
			return nil
		}
	}
	if n := len(h.own); n == 0 || h.own[n-1] != text {
		h.own = newest(append(h.own, text))
	}
	return err
}

func (h *History) append(text string) (err error) {
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return err
	}
	lock := flock.New(h.path+".lock", flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDWR)) // waits for no FIFO
	ctx, cancel := context.WithTimeout(context.Background(), lockTime)
	defer cancel()
	if locked, err := lock.TryLockContext(ctx, 5*time.Millisecond); err != nil && ctx.Err() == nil {
		return err
	} else if !locked {
		return errors.New("another amux writes the history")
	}
	defer lock.Close()
	f, err := foreign.OpenAppend(h.path)
	if err != nil {
		return err
	}
	defer func() {
		if end := f.Close(); err == nil {
			err = end
		}
	}()
	line, err := json.Marshal(text)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size()+int64(len(line)) >= mostFile {
		return h.shorten(text)
	}
	_, err = f.Write(append(line, '\n'))
	return err
}

// shorten replaces the file by one with the newest prompts and another one.
func (h *History) shorten(text string) error {
	data, err := foreign.Read(h.path, foreign.Rule{Limit: 2 * mostFile, NoLink: true, Private: true})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		data = nil // too large for ours: somebody else has filled it
	}
	f, err := os.CreateTemp(filepath.Dir(h.path), ".prompts-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	all := newest(append(parse(data), text))
	for i := max(0, len(all)-mostPrompts); i < len(all) && err == nil; i++ {
		err = json.NewEncoder(f).Encode(all[i])
	}
	if end := f.Close(); err == nil {
		err = end
	}
	if err == nil {
		err = os.Rename(f.Name(), h.path)
	}
	return err
}
