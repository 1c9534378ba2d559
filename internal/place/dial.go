package place

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/amux-dev/amux/internal/place/broker"
	"github.com/amux-dev/amux/internal/sys/printable"
)

// The modes of amux-far.
const (
	ModeServe  = "serve"  // answers what a Client asks
	ModeAttach = "attach" // is the far end of the link to a run's shim
)

const (
	// Greeting is the line after which amux-far speaks. What comes before is what a login
	// there prints.
	Greeting = "amux-far 1"
	// noise is how much of that is read.
	noise = 256 << 10
	// greetTime is how long the greeting may take.
	greetTime = 30 * time.Second
	// verbTime is how long a program that looks after a place may take for one word. A cluster may
	// let a pod wait for room.
	verbTime = time.Hour
	// stderrKept is how much of what the command says is kept for an error.
	stderrKept = 4 << 10
)

// start finds amux-far for the machine that it runs on, and becomes it. $1 is the mode, what
// follows are the machines there are programs for, as uname names them, and their hashes.
const start = `m=$1; shift; s="$(uname -s)-$(uname -m)"
for p; do case "$p" in "$s="*) f="${HOME:?}/.cache/amux/far/${p#*=}/amux-far"
[ -x "$f" ] && exec "$f" "$m"
echo; echo "amux-far missing $s"; exit 0;; esac; done
echo; echo "amux-far unknown $s"`

// install takes the programs from stdin, as one file that unpacks itself.
const install = `umask 077; d="${HOME:?}/.cache/amux/far"; mkdir -p "$d" && t="$d/.new.$$" && cat >"$t" && chmod 700 "$t" && exec "$t" install "$1"`

// Dialer reaches places from this machine.
type Dialer struct {
	Env      []string // of the caller
	Programs Programs // to put there
	Owner    string   // whose containers are listed
	// Known are the programs that are there already, as Programs.Arguments says them: a run goes
	// on with those that it began with. nil: those of Programs.
	Known []string
	// Shared, if not empty, is a folder for sockets that is the user's alone: helper programs of
	// this amux are then one process for many runs.
	Shared string
	// Starting, if not nil, is given each start of a process.
	Starting func(start func() (pid int, err error)) error
}

// Dial runs amux-far there, for the run or for none, and puts it there first if it is missing.
// The stream ends when it does. An error says in words of the command itself why there is
// none.
func (d Dialer) Dial(ctx context.Context, p Place, runID, mode string) (io.ReadWriteCloser, error) {
	available := d.Known
	var sums map[string]string
	for installed := false; ; {
		var err error
		if available == nil {
			if sums, err = d.Programs.sums(); err != nil {
				return nil, err
			}
			available = arguments(sums)
		}
		s, err := d.open(ctx, p, runID, append([]string{"sh", "-c", start, "amux", mode}, available...))
		missing, ok := errors.AsType[*missingError](err)
		if !ok {
			if err != nil {
				return nil, err
			}
			return s, nil
		}
		if missing.unknown {
			return nil, fmt.Errorf("%s is a machine of kind %s, for which this amux has no programs; it has them for %s",
				p.Name, missing.machine, strings.Join(d.Programs.machines(), ", "))
		}
		if sums == nil { // those that it began with were removed
			available = nil
			continue
		}
		if installed {
			return nil, fmt.Errorf("amux's programs were put on %s and cannot be run there", p.Name)
		}
		if err := d.install(ctx, p, runID, missing.machine, sums[missing.machine]); err != nil {
			return nil, err
		}
		installed = true
	}
}

// missingError says that amux-far is not there.
type missingError struct {
	machine string
	unknown bool // there are no programs for it
}

func (e *missingError) Error() string { return "amux-far is not there for " + e.machine }

// stream is a command with its stdin and stdout.
type stream struct {
	io.Writer
	in   *bufio.Reader
	end  func()
	once sync.Once

	ended error // of the command; once it was closed
}

func (s *stream) Read(b []byte) (int, error) { return s.in.Read(b) }

func (s *stream) Close() error {
	s.once.Do(s.end)
	return nil
}

// shared is the program that is one process for many runs; false if the place has none.
func (d Dialer) shared(p Place) (broker.Program, bool) {
	if d.Shared == "" || !p.Own() {
		return broker.Program{}, false
	}
	return broker.Program{Dir: d.Shared, Path: p.Program, Args: []string{"serve"}, Env: p.env(d.Env, d.Owner), Starting: d.Starting}, true
}

// exitError says with which code a command has ended.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// exited is the error for an exit code.
func exited(code int) error {
	if code == 0 {
		return nil
	}
	return exitError(code)
}

// command is the place's command as a process of its own.
func (d Dialer) command(ctx context.Context, argv []string, p Place, said io.Writer) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Stderr, cmd.WaitDelay, cmd.Dir = p.env(d.Env, d.Owner), said, time.Second, "/"
	cmd.SysProcAttr = ownSession()
	return cmd
}

func (d Dialer) begin(cmd *exec.Cmd) error {
	if d.Starting == nil {
		return cmd.Start()
	}
	return d.Starting(func() (int, error) {
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	})
}

// wait waits for the end of a command that was begun. A code of its own is an exitError.
func wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() >= 0 {
		return exitError(exit.ExitCode())
	}
	return err
}

// run runs the place's command to its end.
func (d Dialer) run(ctx context.Context, argv []string, p Place, stdin io.Reader, stdout io.Writer) (said *tail, _ error) {
	said = &tail{}
	if program, ok := d.shared(p); ok {
		code, err := program.Run(ctx, stdin, stdout, said, argv[1:]...)
		return said, errors.Join(err, exited(code))
	}
	cmd := d.command(ctx, argv, p, said)
	cmd.Stdin, cmd.Stdout = stdin, stdout
	err := d.begin(cmd)
	if err == nil {
		err = wait(cmd)
	}
	return said, err
}

// connect runs the place's command with its stdin and stdout connected. It lives for as long as
// the stream, or until life ends.
func (d Dialer) connect(life context.Context, argv []string, p Place, said io.Writer) (*stream, error) {
	if program, ok := d.shared(p); ok {
		call, err := program.Call(life, said, argv[1:]...)
		if err != nil {
			return nil, err
		}
		s := &stream{Writer: call, in: bufio.NewReaderSize(call, piece)}
		s.end = func() {
			_ = call.Close()
			code, _ := call.Exit()
			s.ended = exited(code)
		}
		return s, nil
	}
	life, kill := context.WithCancel(life)
	cmd := d.command(life, argv, p, said)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		kill()
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = d.begin(cmd)
	}
	if err != nil {
		kill()
		return nil, err
	}
	s := &stream{Writer: stdin, in: bufio.NewReaderSize(stdout, piece)}
	s.end = func() {
		_ = stdin.Close()
		kill()
		s.ended = wait(cmd)
	}
	return s, nil
}

// piece is how much is read of a stream at a time.
const piece = 64 << 10

func (d Dialer) open(ctx context.Context, p Place, runID string, argv []string) (_ *stream, retErr error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	said := &tail{}
	argv = p.command(runID, argv)
	s, err := d.connect(life, argv, p, said)
	if err != nil {
		end()
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	defer func() {
		if retErr != nil {
			_ = s.Close()
			end()
		}
	}()
	slow := time.AfterFunc(greetTime, end)
	defer context.AfterFunc(ctx, end)()
	err = greeted(s.in)
	if !slow.Stop() {
		return nil, fmt.Errorf("%s did not answer within %s", p.Name, greetTime)
	}
	if _, missing := errors.AsType[*missingError](err); err == nil || missing {
		return s, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	_ = s.Close() // and with it stderr is complete
	if gone := p.wentAway(s.ended, said.last()); gone != nil {
		return nil, gone
	}
	if last := said.last(); last != "" {
		return nil, fmt.Errorf("%s cannot be reached: %s", p.Name, last)
	}
	if exit, ok := errors.AsType[exitError](s.ended); ok {
		return nil, fmt.Errorf("%s cannot be reached: %s ended with %w", p.Name, argv[0], exit)
	}
	return nil, fmt.Errorf("%s cannot be reached: %w", p.Name, err)
}

// greeted reads up to the greeting.
func greeted(in *bufio.Reader) error {
	for read := 0; read < noise; {
		line, err := in.ReadSlice('\n')
		read += len(line)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("it ended without a word of amux-far: %w", err)
		}
		words := strings.Fields(string(line))
		switch {
		case string(bytes.TrimSpace(line)) == Greeting:
			return nil
		case len(words) == 3 && words[0] == "amux-far" && (words[1] == "missing" || words[1] == "unknown"):
			return &missingError{machine: words[2], unknown: words[1] == "unknown"}
		}
	}
	return errors.New("it prints too much before amux-far is started")
}

// install puts the programs there.
func (d Dialer) install(ctx context.Context, p Place, runID, machine, sum string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	bundle, into := io.Pipe()
	defer bundle.Close()
	go func() { _ = into.CloseWithError(d.Programs.write(into, machine)) }()
	said, err := d.run(ctx, p.command(runID, []string{"sh", "-c", install, "amux", sum}), p, bundle, nil)
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("amux's programs could not be put on %s: %w", p.Name, ctx.Err())
		}
		return fmt.Errorf("amux's programs could not be put on %s: %s", p.Name, said.lastOr(err))
	}
	return nil
}

// tell runs a program of this machine that looks after a place, and returns what it prints.
func (d Dialer) tell(ctx context.Context, p Place, program string, words ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, verbTime)
	defer cancel()
	stdout := &tail{most: 1 << 20}
	said, err := d.run(ctx, append([]string{program}, words...), p, nil, stdout)
	if err != nil {
		return nil, fmt.Errorf("%s: %s %s: %s", p.Name, filepath.Base(program), words[0], said.lastOr(err))
	}
	return stdout.kept, nil
}

// tail keeps the end of what a command says.
type tail struct {
	most int // 0: stderrKept
	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	most := t.most
	if most == 0 {
		most = stderrKept
	}
	t.kept = append(t.kept, b...)
	if over := len(t.kept) - most; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(b), nil
}

// last is the last line, for people.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := ""
	for line := range strings.SplitSeq(string(t.kept), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			last = line
		}
	}
	return printable.Line(last)
}

func (t *tail) lastOr(err error) string {
	if last := t.last(); last != "" {
		return last
	}
	return err.Error()
}
