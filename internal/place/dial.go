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

// run starts the place's command.
func (d Dialer) run(ctx context.Context, argv []string, p Place) (cmd *exec.Cmd, said *tail) {
	cmd = exec.CommandContext(ctx, argv[0], argv[1:]...)
	said = &tail{}
	cmd.Env, cmd.Stderr, cmd.WaitDelay, cmd.Dir = p.env(d.Env, d.Owner), said, time.Second, "/"
	cmd.SysProcAttr = ownSession()
	return cmd, said
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

func (d Dialer) open(ctx context.Context, p Place, runID string, argv []string) (_ *stream, retErr error) {
	// It lives for as long as the stream, not as ctx.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	cmd, said := d.run(life, p.command(runID, argv), p)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		end()
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = d.begin(cmd)
	}
	if err != nil {
		end()
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	s := &stream{Writer: stdin, in: bufio.NewReaderSize(stdout, 64<<10)}
	s.end = func() {
		_ = stdin.Close()
		end()
		s.ended = cmd.Wait()
	}
	defer func() {
		if retErr != nil {
			_ = s.Close()
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
	state, _ := errors.AsType[*exec.ExitError](s.ended)
	if gone := d.wentAway(ctx, p, runID, state, said.last()); gone != nil {
		return nil, gone
	}
	return nil, d.failed(p, cmd, said, err)
}

// failed says why the place's command did not do what it should.
func (d Dialer) failed(p Place, cmd *exec.Cmd, said *tail, err error) error {
	if last := said.last(); last != "" {
		return fmt.Errorf("%s cannot be reached: %s", p.Name, last)
	}
	if state := cmd.ProcessState; state != nil && !state.Success() {
		return fmt.Errorf("%s cannot be reached: %s ended with %s", p.Name, cmd.Args[0], state)
	}
	return fmt.Errorf("%s cannot be reached: %w", p.Name, err)
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
	cmd, said := d.run(ctx, p.command(runID, []string{"sh", "-c", install, "amux", sum}), p)
	bundle, into := io.Pipe()
	defer bundle.Close()
	go func() { _ = into.CloseWithError(d.Programs.write(into, machine)) }()
	cmd.Stdin = bundle
	err := d.begin(cmd)
	if err == nil {
		err = cmd.Wait()
	}
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
	cmd, said := d.run(ctx, append([]string{program}, words...), p)
	stdout := &tail{most: 1 << 20}
	cmd.Stdout = stdout
	err := d.begin(cmd)
	if err == nil {
		err = cmd.Wait()
	}
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
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(line, "--help") { // docker's last word, after each error
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
