//go:build unix

package agents

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The agent carries out the script of each prompt, one command a line:
//
//	lines N          N lines of text
//	say TEXT         a line of text
//	out TEXT         a line as it is; Go's escapes, and no ending unless it is written
//	err TEXT         the same on stderr
//	big N            a line of N bytes
//	repeat N TEXT    TEXT (with escapes) N times
//	leave KIND       leave a process behind and say its pid: child, setsid, daemon, chain, closed, cleanenv
//	shape PROGRAM PIPE LINES
//	                 leave processes behind that are hard to end (see Shapes)
//	ask ID           ask for approval, and say how it was answered
//	hash             say length and SHA-256 of the prompt
//	usage IN OUT     say tokens and cost
//	ignore-term      ignore SIGTERM from now on
//	freeze           SIGSTOP itself
//	sleep SECONDS
//	wait             until stdin ends
//	tui              take the whole screen, until q is typed (see tui.go)
//	program ARGS     run another program on the agent's stdin and stdout
//	exit N           at once
//	end              of the turn, in success; later commands come after it
//	early N COMMAND  a command for the first N agents that were started in this folder
//
// A script whose first line is "deaf" is carried out without a look at stdin. One whose
// first line is "shell" is the shell's: such an agent costs a tenth of this one.
// What it gets on stdin it reports, line by line, before it does anything else.
type agent struct {
	out   *bufio.Writer
	in    *bufio.Reader
	over  bool // stdin has ended
	turns int
	start int // which one it is of those in its folder, once it has looked
}

func runAgent(args []string) int {
	a := &agent{out: bufio.NewWriterSize(os.Stdout, 64<<10), in: bufio.NewReaderSize(os.Stdin, 64<<10)}
	quietTerminal()
	if len(args) > 0 && strings.HasPrefix(args[0], "deaf") {
		return a.turn(args[0])
	}
	for {
		kind, rest, ok := a.next()
		if !ok {
			a.out.Flush()
			return 0
		}
		if kind != "prompt" {
			continue
		}
		if code := a.turn(rest); code >= 0 {
			return code
		}
	}
}

// say prints a line; it is flushed before the agent waits.
func (a *agent) say(line string) {
	a.out.WriteString(line)
	a.out.WriteByte('\n')
}

// next reads a line of stdin and reports it.
func (a *agent) next() (kind, rest string, ok bool) {
	a.out.Flush()
	line, err := a.in.ReadString('\n')
	if err != nil {
		a.over = true
		return "", "", false
	}
	line = strings.TrimSuffix(line, "\n")
	kind, rest, _ = strings.Cut(line, " ")
	if kind == "prompt" {
		if json.Unmarshal([]byte(rest), &rest) != nil {
			rest = ""
		}
	}
	shown := line
	if len(shown) > 100 {
		shown = fmt.Sprintf("%s… %x", shown[:80], sha256.Sum256([]byte(line)))
	}
	a.say("got " + shown)
	return kind, rest, true
}

// turn carries out a script and returns the exit code, or -1 to go on.
func (a *agent) turn(script string) int {
	if a.turns++; a.turns == 1 {
		a.say("hello")
		a.say("pid agent " + strconv.Itoa(os.Getpid()))
	}
	a.say("turn")
	ended := false
	for line := range strings.SplitSeq(script, "\n") {
		command, rest, _ := strings.Cut(line, " ")
		if command == "early" {
			if a.start == 0 {
				a.start = countStart()
			}
			first, later, _ := strings.Cut(rest, " ")
			if last, _ := strconv.Atoi(first); a.start > last {
				continue
			}
			line = later
			command, rest, _ = strings.Cut(line, " ")
		}
		n, _ := strconv.Atoi(strings.Fields(rest + " 0")[0])
		switch command {
		case "lines":
			for i := range n {
				b := append(a.out.AvailableBuffer(), "t line "...)
				a.out.Write(append(strconv.AppendInt(b, int64(i+1), 10), '\n'))
			}
		case "ticks": // lines, with a pause behind each: ticks LINES MILLISECONDS
			var pause int
			fmt.Sscan(rest, &n, &pause)
			for i := range n {
				a.say("t line " + strconv.Itoa(i+1))
				a.out.Flush()
				time.Sleep(time.Duration(pause) * time.Millisecond)
			}
		case "say":
			a.say("t " + rest)
		case "out":
			a.out.WriteString(unescape(rest))
		case "err":
			a.out.Flush()
			os.Stderr.WriteString(unescape(rest))
		case "big":
			a.out.WriteString("t ")
			block := strings.Repeat("0123456789abcdef", 4096)
			for n -= 2; n > 0; n -= len(block) {
				a.out.WriteString(block[:min(n, len(block))])
			}
			a.out.WriteByte('\n')
		case "repeat":
			_, text, _ := strings.Cut(rest, " ")
			text = unescape(text)
			for range n {
				a.out.WriteString(text)
			}
		case "leave":
			a.leave(rest)
		case "shape":
			a.leaveShape(rest)
		case "ask":
			a.ask(rest)
		case "hash":
			a.say(fmt.Sprintf("t %d %x", len(script), sha256.Sum256([]byte(script))))
		case "usage":
			a.say("usage " + rest)
		case "ignore-term":
			signal.Ignore(syscall.SIGTERM)
			a.say("t ignores TERM")
			a.out.Flush()
		case "freeze":
			a.out.Flush()
			syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		case "sleep":
			a.out.Flush()
			seconds, _ := strconv.ParseFloat(rest, 64)
			time.Sleep(time.Duration(seconds * float64(time.Second)))
		case "wait":
			for !a.over {
				a.next()
			}
		case "tui":
			a.out.Flush()
			a.say(fmt.Sprintf("\nt typed %q", a.tui())) // what it drew had no line end
		case "program":
			a.out.Flush()
			cmd := exec.Command("sh", "-c", rest)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
			a.say(fmt.Sprintf("t ended %v", cmd.Run()))
		case "exit":
			a.out.Flush()
			return n
		case "end":
			ended = true
			a.say("end")
		case "do", "arm", "breach", "event", "write":
			a.say(line) // for the adapter
		}
	}
	if !ended {
		a.say("end")
	}
	a.out.Flush()
	if strings.HasPrefix(script, "deaf") {
		return 0
	}
	return -1
}

// countStart says how many agents have been started in this folder.
func countStart() int {
	const file = "starts"
	before, _ := os.ReadFile(file)
	if err := os.WriteFile(file, append(before, '.'), 0o600); err != nil {
		panic(err)
	}
	return len(before) + 1
}

func unescape(text string) string {
	if s, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`); err == nil {
		return s
	}
	return text
}

func (a *agent) ask(id string) {
	a.say("ask " + id)
	for {
		kind, rest, ok := a.next()
		if !ok {
			a.say("t nobody answered " + id)
			return
		}
		answered, how, _ := strings.Cut(rest, " ")
		if kind == "reply" && answered == id {
			a.say("t " + id + " " + how)
			return
		}
	}
}

// leave leaves a process behind. Each of them ends by itself some day, should
// nobody kill it.
func (a *agent) leave(kind string) {
	var script string
	switch kind {
	case "child":
		script = `exec sleep 1000`
	case "setsid":
		script = `exec setsid sleep 1000`
	case "daemon":
		script = `setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!'`
	case "chain":
		script = `exec setsid -f sh "$0" 0`
	case "closed":
		script = `exec 0<&- 1>&- 2>&-; exec sleep 1000`
	case "cleanenv":
		script = `exec env -i sleep 1000`
	}
	a.out.Flush()
	cmd := exec.Command("sh", "-c", script, chainScript())
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	pid := 0
	if kind == "daemon" {
		cmd.Stdout = nil
		out, err := cmd.Output()
		if err != nil {
			a.say("t leave failed: " + err.Error())
		}
		pid, _ = strconv.Atoi(strings.TrimSpace(string(out)))
	} else {
		if err := cmd.Start(); err != nil {
			a.say("t leave failed: " + err.Error())
			return
		}
		pid = cmd.Process.Pid
		if kind == "chain" {
			_ = cmd.Wait()
		}
	}
	a.say(fmt.Sprintf("pid %s %d", kind, pid))
	a.out.Flush()
}

// chainScript writes the program of a chain of processes, each of which starts
// the next in a session of its own and exits.
func chainScript() string {
	path := filepath.Join(os.TempDir(), "chain.sh")
	const script = `n=$(($1 + 1)); [ $n -lt 20000 ] && exec setsid -f sh "$0" $n`
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		return os.DevNull
	}
	return path
}
