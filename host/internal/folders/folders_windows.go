package folders

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/amux-dev/amux/internal/sys/namedpipe"
)

// checkPrivate trusts the user's own temp folder, which Windows protects. No pipe
// lies in it.
func checkPrivate(string) error { return nil }

// checkAround has nothing to do, for the same reason.
func checkAround(string) error { return nil }

// Socket names the address of a run's shim.
func Socket(dir, runID string) string {
	return namedpipe.Name(filepath.Join(dir, strings.ToLower(runID)))
}

// Answers reports whether somebody listens on a pipe.
func Answers(name string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := namedpipe.Dial(ctx, name)
	if err == nil {
		conn.Close()
	}
	return err == nil
}
