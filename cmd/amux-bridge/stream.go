package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"time"
)

// stream prints server-sent events as lines. An event goes through as it comes: no
// length of one makes the bridge grow.
func (b *bridge) stream(body io.Reader) error {
	r := bufio.NewReaderSize(&heard{Reader: body, b: b}, 64<<10)
	inEvent := false // its line is begun, and stdout ours
	defer func() {
		if inEvent {
			b.out.end()
		}
	}()
	for {
		line, err := r.ReadSlice('\n')
		field, rest := cutField(line)
		switch {
		case field == "data":
			if !inEvent {
				inEvent = true
				b.out.begin(`{"type":"event","event":`)
			} else {
				b.out.text([]byte{' '})
			}
			b.out.text(bytes.TrimRight(rest, "\r\n"))
			for err == bufio.ErrBufferFull {
				line, err = r.ReadSlice('\n')
				b.out.text(bytes.TrimRight(line, "\r\n"))
			}
		case len(bytes.TrimRight(line, "\r\n")) == 0 && err == nil:
			if inEvent {
				inEvent = false
				b.out.text([]byte{'}'})
				b.out.end()
			}
		default:
			if field == "" && err == nil && len(line) > 0 {
				b.note("no server-sent event: %.200q", bytes.TrimRight(line, "\r\n"))
			}
			for err == bufio.ErrBufferFull {
				_, err = r.ReadSlice('\n')
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the server closed its events")
			}
			return err
		}
		if r.Buffered() == 0 && !inEvent {
			b.out.flush()
		}
	}
}

// cutField gives the field that a line has, "" for another.
func cutField(line []byte) (name string, value []byte) {
	key, value, ok := bytes.Cut(line, []byte(":"))
	if !ok {
		key, value = bytes.TrimRight(line, "\r\n"), nil
	}
	switch string(key) {
	case "data":
		name = "data"
	case "event", "id", "retry":
		name = "other"
	case "":
		if ok {
			name = "other" // a comment
		}
	}
	return name, bytes.TrimPrefix(value, []byte(" "))
}

// heard notes when the server is waited for and when it has said something.
type heard struct {
	io.Reader
	b *bridge
}

func (h *heard) Read(p []byte) (int, error) {
	h.b.quiet.Store(0)
	h.b.reading.Store(true)
	n, err := h.Reader.Read(p)
	h.b.reading.Store(false)
	return n, err
}

// listen fails the bridge when the server has been silent for too long. Only the time
// spent waiting for it counts.
func (b *bridge) listen(limit time.Duration, done <-chan struct{}) {
	tick := time.NewTicker(max(limit/parts, 1))
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		if b.reading.Load() && b.quiet.Add(1) > parts {
			b.fail("the server hangs: no event and no sign of life for %s", limit)
			return
		}
	}
}
