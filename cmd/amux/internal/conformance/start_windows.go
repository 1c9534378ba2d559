package conformance

import (
	"context"
	"os"
)

func mayExecute(os.FileInfo) bool { return true }

type raw struct{ line string }

func (p *raw) end() {}

func (r *runner) raw(context.Context, int) (*raw, error) {
	return nil, errSkip("a plugin cannot be started by hand here")
}

func (r *runner) lifeline(context.Context) error {
	return errSkip("there is no SIGINT to send here")
}

func rss(int) (int64, bool) { return 0, false }
