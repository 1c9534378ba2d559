package place

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Check is one thing that a helper program must do.
type Check struct {
	Name string
	Err  error // nil: it does
}

// checkTime is how long one check may take.
const checkTime = time.Minute

// Conform tries whether a place does what docs/places/helper.md asks of it, for an id that no run
// has. It goes on after what fails, but for a place that cannot be provisioned.
func (d Dialer) Conform(ctx context.Context, p Place, runID string, told func(Check)) {
	try := func(name string, f func(ctx context.Context) error) bool {
		ctx, cancel := context.WithTimeout(ctx, checkTime)
		defer cancel()
		err := f(ctx)
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("not within %s: %w", checkTime, err)
		}
		told(Check{name, err})
		return err == nil
	}
	verb := func(words ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := d.tell(ctx, p, p.Program, words...)
			return err
		}
	}
	listed := func(want bool) func(context.Context) error {
		return func(ctx context.Context) error {
			runs, err := d.List(ctx, p)
			if err != nil {
				return err
			}
			if slices.Contains(runs, runID) && !want {
				return fmt.Errorf("list still names %s", runID)
			}
			return nil // a place that makes nothing for a run has nothing to list
		}
	}
	if !try("provision makes a place for a run", verb("provision", runID)) {
		return
	}
	defer func() {
		try("destroy removes it", verb("destroy", runID))
		try("list does not name it then", listed(false))
		try("destroy may come twice", verb("destroy", runID))
	}()
	try("list works", listed(true))
	try("an unknown verb fails", func(ctx context.Context) error {
		if _, err := d.tell(ctx, p, p.Program, "no-such-verb"); err == nil {
			return errors.New("it ended with code 0")
		}
		return nil
	})
	run := func(stdin []byte, argv ...string) func(ctx context.Context) (stdout, stderr []byte, code int, err error) {
		return func(ctx context.Context) ([]byte, []byte, int, error) {
			var stdout bytes.Buffer
			said, err := d.run(ctx, p.command(runID, argv), p, bytes.NewReader(stdin), &stdout)
			if exit, ok := errors.AsType[exitError](err); ok {
				return stdout.Bytes(), said.kept, int(exit), nil
			}
			return stdout.Bytes(), said.kept, 0, err
		}
	}
	words := []string{"", "two words", "it's", `"quoted"`, "$HOME", "back\\slash", "a\nline", "*", "-x", "ünï"}
	try("exec passes arguments as they are", func(ctx context.Context) error {
		stdout, _, code, err := run(nil, append([]string{"sh", "-c", `for a; do printf '%s\0' "$a"; done`, "sh"}, words...)...)(ctx)
		if err != nil || code != 0 {
			return fmt.Errorf("code %d, %w", code, err)
		}
		if want := strings.Join(words, "\x00") + "\x00"; string(stdout) != want {
			return fmt.Errorf("it passes %q, not %q", stdout, want)
		}
		return nil
	})
	try("exec passes stdin and stdout, byte by byte, and the end of stdin", func(ctx context.Context) error {
		data := make([]byte, 1<<20)
		_, _ = rand.Read(data)
		stdout, _, _, err := run(data, "cat")(ctx)
		if err == nil && !bytes.Equal(stdout, data) {
			err = fmt.Errorf("of %d bytes %d came back, or others", len(data), len(stdout))
		}
		return err
	})
	try("exec keeps stderr apart", func(ctx context.Context) error {
		stdout, stderr, _, err := run(nil, "sh", "-c", "echo out; echo err >&2")(ctx)
		if err == nil && (string(stdout) != "out\n" || !strings.Contains(string(stderr), "err")) {
			err = fmt.Errorf("stdout %q, stderr %q", stdout, stderr)
		}
		return err
	})
	try("exec ends with the code of the command", func(ctx context.Context) error {
		_, _, code, err := run(nil, "sh", "-c", "exit 7")(ctx)
		if err == nil && code != 7 {
			err = fmt.Errorf("it ends with code %d, not 7", code)
		}
		return err
	})
	try("what is printed comes at once", func(ctx context.Context) error {
		s, err := d.connect(ctx, p.command(runID, []string{"sh", "-c", "echo first; read line; echo $line"}), p, io.Discard)
		if err != nil {
			return err
		}
		defer s.Close()
		buf := make([]byte, 6)
		if _, err := s.Read(buf); err != nil {
			return err
		}
		_, err = s.Write([]byte("second\n"))
		if err == nil {
			_, err = s.Read(buf)
		}
		return err
	})
	try("two commands run at a time", func(ctx context.Context) error {
		const script = `d="${TMPDIR:-/tmp}/amux-conform-$1"; if [ "$2" = wait ]; then i=0; while [ ! -e "$d" ]; do i=$((i+1)); [ $i -gt 300 ] && exit 1; sleep 0.1; done; rm -f "$d"; else : >"$d"; fi`
		waits := make(chan error, 1)
		go func() {
			_, _, code, err := run(nil, "sh", "-c", script, "sh", runID, "wait")(ctx)
			if err == nil && code != 0 {
				err = errors.New("the second did not begin before the first had ended")
			}
			waits <- err
		}()
		if _, _, _, err := run(nil, "sh", "-c", script, "sh", runID, "go")(ctx); err != nil {
			return err
		}
		return <-waits
	})
	try("amux's programs run there", func(ctx context.Context) error {
		client, err := d.Open(ctx, p, runID)
		if err != nil {
			return err
		}
		defer client.Close()
		if _, err := client.World(ctx); err != nil {
			return err
		}
		if _, err := client.Make(ctx, runID, nil); err != nil {
			return err
		}
		return client.Remove(ctx, runID)
	})
}
