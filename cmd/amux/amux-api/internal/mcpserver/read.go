package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/amux-dev/amux/cmd/amux/amux-api/internal/excerpt"
	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi/code"
)

const (
	defaultRead = 32 << 10
	mostRead    = 256 << 10
)

func size(n int) (int, error) {
	switch {
	case n == 0:
		return defaultRead, nil
	case n < 1024 || n > mostRead:
		return 0, app.Usagef("invalid max_bytes %d: expected 1024 to %d", n, mostRead)
	}
	return n, nil
}

// message is the text of a message that has ended; empty for any other event.
func message(e host.Event) string {
	var m struct {
		Text string `json:"text"`
	}
	if string(e.Type) != code.EventMessageStop || json.Unmarshal(e.Raw, &m) != nil {
		return ""
	}
	return m.Text
}

// lastAnswer is the last message among the last events of a run.
func lastAnswer(i host.RunInfo) string {
	recent := i.Recent(200)
	for n := len(recent) - 1; n >= 0; n-- {
		if text := message(recent[n]); text != "" {
			text, _ = excerpt.Text(text, maxAnswer)
			return text
		}
	}
	return ""
}

type readIn struct {
	RunID    string `json:"run_id"`
	Format   string `json:"format,omitempty" jsonschema:"text (default): the messages of the agent; events: all its events"`
	From     uint64 `json:"from,omitempty" jsonschema:"the number (seq) of the first event; default 1. To go on, use next of the last call"`
	MaxBytes int    `json:"max_bytes,omitempty" jsonschema:"at most so much; default 32768, at most 262144"`
}

type readOut struct {
	RunID     string `json:"run_id"`
	State     string `json:"state"`
	Text      string `json:"text,omitempty"`
	Events    []any  `json:"events,omitempty" jsonschema:"as amux logs --json prints them"`
	Next      uint64 `json:"next" jsonschema:"from of the next call"`
	More      bool   `json:"more" jsonschema:"there is more already"`
	Truncated bool   `json:"truncated,omitempty" jsonschema:"an event or text alone was larger than max_bytes, and was cut"`
}

func (s *server) read(ctx context.Context, _ func(float64, string), in readIn) (readOut, error) {
	most, err := size(in.MaxBytes)
	if err != nil {
		return readOut{}, err
	}
	if in.Format != "" && in.Format != "text" && in.Format != "events" {
		return readOut{}, app.Usagef("invalid format %q: expected text or events", in.Format)
	}
	r, err := s.host.Open(ctx, in.RunID)
	if err != nil {
		return readOut{}, err
	}
	info := r.Info()
	out := readOut{RunID: info.ID, State: info.State, Next: max(in.From, 1)}
	if out.Next > info.Events {
		return out, nil
	}
	var text strings.Builder
	used := 0
	for e, err := range r.Events(ctx, out.Next) {
		if err != nil {
			return out, err
		}
		piece := string(bytes.TrimSpace(e.Raw))
		if in.Format != "events" {
			if piece = message(e); piece != "" {
				piece += "\n"
			}
		}
		if used > 0 && used+len(piece) > most {
			out.More = true
			break
		}
		cut, long := excerpt.Text(piece, most)
		used += len(cut)
		switch {
		case in.Format != "events":
			text.WriteString(cut)
		case long:
			out.Events = append(out.Events, map[string]any{"type": string(e.Type), "seq": e.Seq, "truncated": true, "start": cut})
		default:
			out.Events = append(out.Events, json.RawMessage(piece))
		}
		out.Truncated = out.Truncated || long
		out.Next = e.Seq + 1
		if e.Seq >= info.Events { // what comes later is for the next call
			break
		}
	}
	out.Text = text.String()
	return out, nil
}

type diffIn struct {
	RunID    string `json:"run_id"`
	Patch    bool   `json:"patch,omitempty" jsonschema:"the patch too, not the files alone"`
	MaxBytes int    `json:"max_bytes,omitempty" jsonschema:"of the patch; default 32768, at most 262144"`
}

type fileOut struct {
	Path    string `json:"path"`
	OldPath string `json:"old_path,omitempty"`
	Added   int    `json:"added"`
	Deleted int    `json:"deleted"`
	Binary  bool   `json:"binary,omitempty"`
}

type diffOut struct {
	RunID     string    `json:"run_id"`
	Root      string    `json:"root" jsonschema:"paths are relative to it"`
	Files     []fileOut `json:"files"`
	MoreFiles int       `json:"more_files,omitempty"`
	Patch     string    `json:"patch,omitempty"`
	Truncated bool      `json:"truncated,omitempty" jsonschema:"the patch was cut"`
}

// maxFiles is how many files a diff lists.
const maxFiles = 500

func (s *server) diff(ctx context.Context, _ func(float64, string), in diffIn) (diffOut, error) {
	most, err := size(in.MaxBytes)
	if err != nil {
		return diffOut{}, err
	}
	r, err := s.host.Open(ctx, in.RunID)
	if err != nil {
		return diffOut{}, err
	}
	d, err := r.Changes().Diff(ctx)
	if err != nil {
		return diffOut{}, err
	}
	defer d.Close()
	files, err := d.Files(ctx)
	if err != nil {
		return diffOut{}, err
	}
	out := diffOut{RunID: r.ID(), Root: d.Root(), Files: []fileOut{}, MoreFiles: max(0, len(files)-maxFiles)}
	for _, f := range files[:min(len(files), maxFiles)] {
		out.Files = append(out.Files, fileOut{f.Path, f.OldPath, f.Added, f.Deleted, f.Binary})
	}
	if !in.Patch {
		return out, nil
	}
	out.Patch, out.Truncated, err = excerpt.Patch(ctx, d, most)
	return out, err
}
