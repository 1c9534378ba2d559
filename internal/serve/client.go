package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

// Call asks the server of the runtime folder dir. ErrNone: there is none; nothing
// was done.
func Call(ctx context.Context, dir string, req Request) (Reply, error) {
	var reply Reply
	req.Protocol = Protocol
	line, err := json.Marshal(req)
	if err != nil {
		return reply, err
	}
	if len(line) >= maxLine {
		return reply, fmt.Errorf("the request has %d MiB, and %d are the limit", len(line)>>20, maxLine>>20)
	}
	conn, err := dial(ctx, filepath.Join(dir, socketName))
	if ctx.Err() != nil {
		if err == nil {
			conn.Close()
		}
		return reply, ctx.Err() // not ErrNone: it was not looked whether there is one
	}
	if err != nil {
		return reply, fmt.Errorf("%w: %w", ErrNone, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := checkPeer(conn); err != nil {
		return reply, err
	}
	if _, err := conn.Write(append(line, '\n')); err != nil {
		return reply, fmt.Errorf("%w: %w", ErrLost, err)
	}
	line, err = readLine(bufio.NewReader(conn))
	if err == nil {
		err = json.Unmarshal(line, &reply)
	}
	if ctx.Err() != nil {
		return reply, ctx.Err()
	}
	if err != nil {
		return reply, fmt.Errorf("%w: %w", ErrLost, err)
	}
	return reply, nil
}

// readLine reads up to a newline, maxLine bytes at most.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return nil, fmt.Errorf("a line of more than %d MiB", maxLine>>20)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			if errors.Is(err, io.EOF) && len(line) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}
