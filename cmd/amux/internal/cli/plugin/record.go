package plugin

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

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/pluginapi"
)

// RecordOptions are what amux plugin record needs.
type RecordOptions struct {
	Process       *app.Process
	Print         *app.Printer
	Interruptible func(func(ctx context.Context) error) error

	Name string
	Argv []string
	Dir  string
}

// NewCmdRecord makes amux plugin record.
func NewCmdRecord(a *app.App) *cobra.Command {
	o := &RecordOptions{Process: a.Process, Print: a.Print, Interruptible: a.Interruptible}
	cmd := &cobra.Command{
		Use:   "record NAME -- COMMAND [ARG…]",
		Short: "Record an agent's output as an adapter test",
		Long: `Run an agent and write its output, with the times, to testdata/NAME.txtar, which
sdk/adaptertest reads. You write what the adapter must make of it: the section
expect.json. amux replaces the values of environment variables that look secret, and
your home folder; check the file all the same before you share it.`,
		Example: `  amux plugin record hello -- acme --print "say hello"
  amux plugin record limits --dir recordings -- acme --json "hi"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() > 1 {
				return app.Usagef("amux plugin record takes one name before --").WithHint("usage: %s", cmd.UseLine())
			}
			if len(args) < 2 {
				return app.ExactArgs("a name", "a command after --")(cmd, args)
			}
			return nil
		},
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Name, o.Argv = args[0], args[1:]
			return recordAgent(o)
		}),
	}
	cmd.Flags().StringVar(&o.Dir, "dir", "testdata", "`FOLDER` of recordings")
	return cmd
}

func recordAgent(o *RecordOptions) error {
	if err := install.CheckName(o.Name); err != nil {
		return err
	}
	file := filepath.Join(o.Process.Abs(o.Dir), o.Name+".txtar")
	if _, err := os.Lstat(file); err == nil {
		return pluginapi.Errorf(pluginapi.CodeValidation, "%s already exists", file).WithHint("choose another name, or remove it")
	}
	return o.Interruptible(func(ctx context.Context) error { return record(ctx, o, file) })
}

// recording is the output of an agent, line by line.
type recording struct {
	began time.Time
	hide  *strings.Replacer

	mu     sync.Mutex
	stdout bytes.Buffer
	inputs strings.Builder
	run    int // lines of stdout since the last other input
	last   int64
}

// maxRecording is the size limit of a recording.
const maxRecording = 64 << 20

// secrets returns a replacer for what must not get into a shared file.
func secrets(p *app.Process) *strings.Replacer {
	var pairs []string
	for _, variable := range p.Env {
		name, value, _ := strings.Cut(variable, "=")
		upper := strings.ToUpper(name)
		if len(value) >= 6 && slices.ContainsFunc([]string{"KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"}, func(word string) bool { return strings.Contains(upper, word) }) {
			pairs = append(pairs, value, "REDACTED-"+name)
		}
	}
	if len(p.Home) > 1 {
		pairs = append(pairs, p.Home, "/home/u")
	}
	return strings.NewReplacer(pairs...)
}

func record(ctx context.Context, o *RecordOptions, file string) error {
	p, argv := o.Process, o.Argv
	path := argv[0]
	if !strings.ContainsAny(path, `/\`) {
		found, err := exec.LookPath(path)
		if err != nil {
			return pluginapi.Errorf(pluginapi.CodeValidation, "no program %s in PATH", path)
		}
		path = found
	}
	r := &recording{began: time.Now(), hide: secrets(p)}
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.WaitDelay = p.Cwd, p.Env, p.IO.In, time.Second
	out, errs := &lineWriter{each: r.out, show: p.IO.Out}, &lineWriter{each: r.err, show: p.IO.Err}
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
		return pluginapi.Errorf(pluginapi.CodeValidation, "the output of %s is longer than 64 MiB", argv[0])
	}
	code := 0
	if exited {
		code = exit.ExitCode()
	}
	return writeRecording(o.Print, file, r, code)
}

func writeRecording(p *app.Printer, file string, r *recording, code int) error {
	r.flush()
	fmt.Fprintf(&r.inputs, "exit %d\n", code)
	text := "Recorded " + r.began.UTC().Format(time.DateOnly) + ". Write into expect.json what the adapter must make of it.\n" +
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
	p.Notef("wrote %s", file)
	p.Notef("add what the adapter must make of it:  -- expect.json --")
	p.Notef(`for example:  {"final_text": "…", "outcome": ""}   then: go test ./... -update`)
	return nil
}

// out takes a line of stdout. A line that txtar would misread is quoted among the
// inputs.
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

// at notes the time, if some has passed.
func (r *recording) at() {
	if now := time.Since(r.began).Milliseconds(); now > r.last+100 {
		r.flush()
		fmt.Fprintf(&r.inputs, "# %d ms\n", now)
		r.last = now
	}
}

// flush writes down how many lines of stdout came.
func (r *recording) flush() {
	if r.run > 0 {
		fmt.Fprintf(&r.inputs, "stdout %d\n", r.run)
		r.run = 0
	}
}

// lineWriter passes on lines, and copies everything to show.
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
