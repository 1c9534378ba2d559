package cli

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/amux-dev/amux/host"
)

// endless is stdin as yes writes it; n counts what was taken.
type endless struct{ n int64 }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = "y\n"[(e.n+int64(i))%2]
	}
	e.n += int64(len(p))
	return len(p), nil
}

func TestEndlessStdinStopsAtTheLimit(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"run", "alpha", "-"}, {"run", "alpha"}, {"run", "alpha", "review this"}, {"send", "RUN", "-"}, {"send", "RUN", "also"}} {
		b := newBench(t, "")
		in := &endless{}
		b.io.In, b.io.InPiped = in, true
		for i, arg := range args {
			if arg == "RUN" {
				args[i] = b.host.run.ID()
			}
		}
		if code := b.main(args...); code != 2 || !strings.Contains(b.err.String(), "more on stdin than a prompt may have (8 MiB)") {
			t.Errorf("%v: code %d: %s", args, code, b.err)
		}
		if in.n > host.MaxPrompt+1 {
			t.Errorf("%v: %d bytes were read", args, in.n)
		}
		if b.host.spec.Agent != "" {
			t.Errorf("%v: a run was started", args)
		}
	}
}

// What is piped in beside a prompt follows it; nothing else reads stdin.
func TestPipedText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, stdin  string
		piped, ready bool
		args         []string
		prompt, says string
	}{
		{"pipe", "diff\n", true, true, []string{"run", "alpha", "review"}, "review\n\ndiff\n", "5 bytes of stdin follow the prompt"},
		{"no agent", "diff", true, true, []string{"run", "review it"}, "review it\n\ndiff", "4 bytes of stdin"},
		{"empty", "", true, true, []string{"run", "alpha", "review"}, "review", ""},
		{"idle", "never", true, false, []string{"run", "alpha", "review"}, "review", "nothing came on stdin for 3s"},
		{"terminal or device", "typed", false, true, []string{"run", "alpha", "review"}, "review", ""},
		{"quiet", "diff", true, true, []string{"run", "alpha", "review", "--quiet"}, "review\n\ndiff", ""},
		{"conversation", `{"type":"end"}`, true, true, []string{"run", "alpha", "review", "--json", "--input", "ndjson"}, "review", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, test.stdin)
			b.io.InPiped = test.piped
			asked := time.Duration(0)
			b.io.WaitIn = func(d time.Duration) bool { asked = d; return test.ready }
			if code := b.main(test.args...); code != 0 {
				t.Fatalf("code %d: %s", code, b.err)
			}
			if b.host.spec.Prompt != test.prompt {
				t.Errorf("prompt %q, want %q", b.host.spec.Prompt, test.prompt)
			}
			if said := strings.Contains(b.err.String(), "stdin"); said != (test.says != "") || !strings.Contains(b.err.String(), test.says) {
				t.Errorf("said %q, want %q", b.err, test.says)
			}
			if asked > pipedWait {
				t.Errorf("it would wait %v", asked)
			}
		})
	}
}

func TestPipedTextThatIsNoText(t *testing.T) {
	t.Parallel()
	b := newBench(t, "\xff\xfe")
	b.io.InPiped = true
	if code := b.main("run", "alpha", "review"); code != 2 || !strings.Contains(b.err.String(), "UTF-8") {
		t.Errorf("code %d: %s", code, b.err)
	}
}

func TestFoldersToWorkIn(t *testing.T) {
	t.Parallel()
	for _, detach := range []string{"--debug=false", "--detach"} {
		for flag, want := range map[string]string{
			"none":     "--cwd none: it does not exist",
			"file":     "--cwd file: it is not a folder",
			"file/sub": "--cwd file/sub: it cannot be used: not a directory",
		} {
			b := newBench(t, "")
			if err := os.WriteFile(filepath.Join(b.config, "file"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			code := b.main("run", "alpha", "hi", detach, "--cwd", flag)
			if code != 2 || !strings.Contains(b.err.String(), want) && !isWindows || b.host.spec.Agent != "" {
				t.Errorf("%s %s: code %d: %s", detach, flag, code, b.err)
			}
		}
		b := newBench(t, "")
		b.gone = true
		want := "the folder that amux was started in does not exist any more"
		for _, args := range [][]string{{}, {"--cwd", "sub"}} {
			if code := b.main(append([]string{"run", "alpha", "hi", detach}, args...)...); code != 2 || !strings.Contains(b.err.String(), want) {
				t.Errorf("%s %v: code %d: %s", detach, args, code, b.err)
			}
		}
	}
}

func TestLongLinesArePassedOver(t *testing.T) {
	t.Parallel()
	r := bufio.NewReaderSize(strings.NewReader("one\n"+strings.Repeat("x", 100)+"\ntwo\n"+strings.Repeat("y", 100)), 16)
	var got []string
	for {
		line, err := readLine(r, 50)
		switch {
		case errors.Is(err, errLongLine):
			got = append(got, "long")
			continue
		case len(line) > 0:
			got = append(got, string(line))
		}
		if err == io.EOF {
			break
		}
	}
	if text := strings.Join(got, "|"); text != "one\n|long|two\n" {
		t.Errorf("got %q", text)
	}
}

func FuzzReadLine(f *testing.F) {
	f.Add("a\nbb\n\nccc", uint8(2))
	f.Add("no end", uint8(0))
	f.Fuzz(func(t *testing.T, text string, limit uint8) {
		r := bufio.NewReaderSize(iotest.OneByteReader(strings.NewReader(text)), 16)
		want := strings.SplitAfter(text, "\n")
		for i := 0; ; i++ {
			line, err := readLine(r, int(limit))
			short := len(want[i]) <= int(limit)
			switch {
			case short && string(line) != want[i], !short && len(line) > 0:
				t.Fatalf("line %d of %q: %q, %v", i, text, line, err)
			case !short && strings.HasSuffix(want[i], "\n") && !errors.Is(err, errLongLine):
				t.Fatalf("line %d of %q: %v", i, text, err)
			}
			if err == io.EOF {
				if i != len(want)-1 {
					t.Fatalf("%d lines of %d", i+1, len(want))
				}
				return
			}
		}
	})
}
