package broker

import (
	"context"
	"io"
)

// Handler does for one caller what the program does with words on its command line, and returns
// the exit code. ctx ends when the caller does not wait any more. Reading stdin may fail with
// other errors than io.EOF.
type Handler func(ctx context.Context, words []string, stdin io.Reader, stdout, stderr io.Writer) (code int)
