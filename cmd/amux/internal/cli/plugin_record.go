package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/pluginapi"
)

func newPluginRecord(s *session) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "record NAME -- COMMAND [ARG…]",
		Short: "Record what an agent prints, as a test of its adapter",
		Long: `Run an agent and write what it prints, with the times, to testdata/NAME.txtar, which
sdk/adaptertest reads. What must come of it is for you to write: the section
expect.json. Values of environment variables that look secret, and your home folder,
are replaced; look through the file all the same before you share it.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() > 1 {
				return usage("amux plugin record takes one name before --").WithHint("usage: %s", cmd.UseLine())
			}
			if len(args) < 2 {
				return exactly("a name", "a command after --")(cmd, args)
			}
			return nil
		},
		RunE: command(func(_ *cobra.Command, args []string) error {
			if err := install.CheckName(args[0]); err != nil {
				return err
			}
			if dir == "" {
				dir = "testdata"
			}
			file := filepath.Join(s.abs(dir), args[0]+".txtar")
			if _, err := os.Lstat(file); err == nil {
				return pluginapi.Errorf(pluginapi.CodeValidation, "%s exists already", file).WithHint("take another name, or remove it")
			}
			return s.interruptible(func(ctx context.Context) error { return s.record(ctx, file, args[1:]) })
		}),
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the `FOLDER` of recordings (default testdata)")
	return cmd
}

// recording is what comes of an agent, line by line.
type recording struct {
	began time.Time
	hide  *strings.Replacer

	mu     sync.Mutex
	stdout bytes.Buffer
	inputs strings.Builder
	run    int // lines of stdout since the last other input
	last   int64
}

// maxRecording is what a test may hold.
const maxRecording = 64 << 20

// secrets makes a replacer for what must not get into a file that is shared.
func (s *session) secrets() *strings.Replacer {
	var pairs []string
	for _, variable := range s.app.Env {
		name, value, _ := strings.Cut(variable, "=")
		upper := strings.ToUpper(name)
		if len(value) >= 6 && slices.ContainsFunc([]string{"KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"}, func(word string) bool { return strings.Contains(upper, word) }) {
			pairs = append(pairs, value, "REDACTED-"+name)
		}
	}
	if len(s.app.Home) > 1 {
		pairs = append(pairs, s.app.Home, "/home/u")
	}
	return strings.NewReplacer(pairs...)
}

func (s *session) record(ctx context.Context, file string, argv []string) error {
	path := argv[0]
	if !strings.ContainsAny(path, `/\`) {
		found, err := exec.LookPath(path)
		if err != nil {
			return pluginapi.Errorf(pluginapi.CodeValidation, "there is no program %s in PATH", path)
		}
		path = found
	}
	r := &recording{began: time.Now(), hide: s.secrets()}
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.WaitDelay = s.app.Cwd, s.app.Env, s.app.IO.In, time.Second
	out, errs := &lineWriter{each: r.out, show: s.app.IO.Out}, &lineWriter{each: r.err, show: s.app.IO.Err}
	cmd.Stdout, cmd.Stderr = out, errs
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	exit, exited := errors.AsType[*exec.ExitError](err)
	if err != nil && !exited {
		return pluginapi.Errorf(pluginapi.CodeValidation, "%s cannot be run: %w", argv[0], err)
	}
	out.end()
	errs.end()
	if r.stdout.Len() > maxRecording {
		return pluginapi.Errorf(pluginapi.CodeValidation, "%s prints more than a test should hold (64 MiB)", argv[0])
	}
	code := 0
	if exited {
		code = exit.ExitCode()
	}
	return s.writeRecording(file, r, code)
}

func (s *session) writeRecording(file string, r *recording, code int) error {
	r.flush()
	fmt.Fprintf(&r.inputs, "exit %d\n", code)
	text := "Recorded " + r.began.UTC().Format(time.DateOnly) + ". Say in expect.json what must come of it.\n" +
		"-- stdout --\n" + r.stdout.String() + "-- inputs --\n" + r.inputs.String()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return pluginapi.Errorf(pluginapi.CodeConfig, "%w", err)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = io.WriteString(f, text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeConfig, "%w", err)
	}
	s.errf("wrote %s", file)
	s.errf("add what must come of it:  -- expect.json --")
	s.errf(`for example:  {"final_text": "…", "outcome": ""}   then: go test ./... -update`)
	return nil
}

// out takes a line of stdout. One that txtar would misread is quoted in its place.
func (r *recording) out(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line = r.hide.Replace(line)
	r.at()
	if strings.HasPrefix(line, "-- ") {
		r.flush()
		fmt.Fprintf(&r.inputs, "outq %s\n", strconv.Quote(line))
		return
	}
	if strings.TrimSuffix(line, "\r") != "" {
		r.run++ // empty lines are no inputs
	}
	r.stdout.WriteString(line + "\n")
}

func (r *recording) err(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at()
	r.flush()
	if line != "" {
		fmt.Fprintf(&r.inputs, "errq %s\n", strconv.Quote(r.hide.Replace(line)))
	}
}

// at notes the time, where some has passed.
func (r *recording) at() {
	if now := time.Since(r.began).Milliseconds(); now > r.last+100 {
		r.flush()
		fmt.Fprintf(&r.inputs, "# %d ms\n", now)
		r.last = now
	}
}

// flush places the lines of stdout that have come.
func (r *recording) flush() {
	if r.run > 0 {
		fmt.Fprintf(&r.inputs, "stdout %d\n", r.run)
		r.run = 0
	}
}

// lineWriter hands on lines, and shows what comes.
type lineWriter struct {
	each func(string)
	show io.Writer
	rest []byte
}

func (w *lineWriter) Write(b []byte) (int, error) {
	_, _ = w.show.Write(b)
	w.rest = append(w.rest, b...)
	for {
		line, rest, ok := bytes.Cut(w.rest, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		w.each(string(line))
		w.rest = rest
	}
}

func (w *lineWriter) end() {
	if len(w.rest) > 0 {
		w.each(string(w.rest))
		w.rest = nil
	}
}
