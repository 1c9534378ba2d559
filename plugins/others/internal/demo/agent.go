package demo

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/amux-dev/amux/pluginapi"
)

// agent is the demo agent's process.
type agent struct {
	out    *bufio.Writer
	stderr io.Writer
	model  string
	effort string

	// inbox has the prompts and models that came in on stdin; it is unbounded, so
	// that stdin is always read.
	mu        sync.Mutex
	wake      *sync.Cond
	inbox     []line
	ended     bool // stdin has ended
	busy      bool // working on a prompt
	turns     int  // turns that have ended
	stopTurn  int  // the turn that an interrupt was meant for
	interrupt chan struct{}
	replies   chan line
	noReplies chan struct{} // closed when stdin has ended

	scratch string
	calls   int // tools called
	asks    int // questions asked and approvals
	pace    time.Duration
	words   int64 // said in this turn
	thought int64
}

// interrupted is the error of a turn that was interrupted.
type interrupted struct{}

func (interrupted) Error() string { return "interrupted" }

// exitNow is the error that ends the agent without another word.
type exitNow int

func (exitNow) Error() string { return "exit" }

// RunAgent is the main function of the agent; it returns the exit code.
func RunAgent(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == helperArg {
		return helper(args[1:], stdout, stderr)
	}
	flags := flag.NewFlagSet(AgentArg, flag.ContinueOnError)
	flags.SetOutput(stderr)
	session := flags.String("session", "demo", "session id to report")
	model := flags.String("model", "demo-small", "model to report")
	effort := flags.String("effort", "", "effort to report")
	if flags.Parse(args) != nil {
		return 2
	}
	a := &agent{
		out: bufio.NewWriterSize(stdout, 64<<10), stderr: stderr, model: *model, effort: *effort,
		stopTurn: -1, interrupt: make(chan struct{}, 1), replies: make(chan line, 16), noReplies: make(chan struct{}),
	}
	a.wake = sync.NewCond(&a.mu)
	defer a.cleanUp()
	a.say("hello", field{"session", *session}, field{"model", *model}, field{"version", agentVersion})
	a.out.Flush()
	go a.read(stdin) // ends with the process
	for turn := 0; ; turn++ {
		prompt, ok := a.next()
		if !ok {
			return 0
		}
		if code, exit := a.turn(turn, prompt); exit {
			return code
		}
	}
}

func (a *agent) cleanUp() {
	a.out.Flush()
	if a.scratch != "" {
		os.RemoveAll(a.scratch)
	}
}

// read takes in stdin until it ends.
func (a *agent) read(stdin io.Reader) {
	r := bufio.NewReaderSize(stdin, 64<<10)
	for {
		data, err := r.ReadBytes('\n')
		var l line
		if len(data) > 1 && json.Unmarshal(data, &l) == nil {
			switch l.Type {
			case "interrupt":
				a.interruptNow()
			case "reply", "answer":
				select {
				case a.replies <- l:
				default: // nobody asked
				}
			default:
				a.mu.Lock()
				a.inbox = append(a.inbox, l)
				a.wake.Signal()
				a.mu.Unlock()
			}
		}
		if err != nil {
			a.mu.Lock()
			a.ended = true
			a.wake.Signal()
			a.mu.Unlock()
			close(a.noReplies)
			return
		}
	}
}

// interruptNow interrupts the turn at work, or the one whose prompt waits.
func (a *agent) interruptNow() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.busy && len(a.inbox) == 0 {
		return
	}
	a.stopTurn = a.turns
	select {
	case a.interrupt <- struct{}{}:
	default:
	}
}

// stopped reports whether the interrupt that was just received is for this turn.
func (a *agent) stopped() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stopTurn == a.turns
}

// next waits for a prompt; false means that there will be none.
func (a *agent) next() (string, bool) {
	a.out.Flush()
	for {
		a.mu.Lock()
		for len(a.inbox) == 0 && !a.ended {
			a.wake.Wait()
		}
		if len(a.inbox) == 0 {
			a.mu.Unlock()
			return "", false
		}
		l := a.inbox[0]
		a.inbox = a.inbox[1:]
		a.busy = l.Type == "prompt"
		a.mu.Unlock()
		switch l.Type {
		case "prompt":
			return l.Text, true
		case "model":
			a.model = l.Model
			a.say("model", field{"model", a.model})
			a.out.Flush()
		}
	}
}

// turn works on one prompt.
func (a *agent) turn(index int, prompt string) (code int, exit bool) {
	a.words, a.thought, a.pace = 0, 0, 20*time.Millisecond
	a.say("turn", field{"index", index})
	steps := parseDirectives(prompt)
	var err error
	if len(steps) == 0 {
		err = a.show(prompt)
	} else {
		err = a.follow(prompt, steps)
	}
	if code, ok := err.(exitNow); ok {
		return int(code), true
	}
	in := int64(len(strings.Fields(prompt))) + 40
	cost := in*3 + (a.words+a.thought)*15
	a.say("usage", field{"input", in}, field{"output", a.words + a.thought}, field{"thinking", a.thought},
		field{"model", a.model}, field{"microdollars", cost})
	switch failure := err.(type) {
	case nil:
		a.say("turn_end", field{"status", "ok"})
	case interrupted:
		a.say("turn_end", field{"status", "interrupted"})
	case *failed:
		a.say("turn_end", field{"status", "failed"}, field{"code", failure.code}, field{"error", failure.text})
	default:
		a.say("turn_end", field{"status", "failed"}, field{"error", err.Error()})
	}
	a.mu.Lock()
	a.busy = false
	a.turns++
	a.mu.Unlock()
	a.out.Flush()
	return 0, false
}

// show is what a prompt without directives gets.
func (a *agent) show(prompt string) error {
	words := strings.Fields(strings.ReplaceAll(prompt, "[fast]", ""))
	quoted := strings.Join(words, " ")
	if runes := []rune(quoted); len(runes) > 120 {
		quoted = string(runes[:120]) + "…"
	}
	steps := []func() error{
		func() error {
			return a.think("The prompt has " + count(len(words), "word") + ". I have no model to ask, so I follow my script: make a file, edit it, read it, and say what I did.")
		},
		func() error { return a.message("I am the demo agent. Let me make a file in a scratch folder.") },
		func() error { return a.writeFile("notes.txt", "You said: "+quoted+"\nStatus: draft\n") },
		func() error { return a.editFile("notes.txt", "Status: draft", "Status: done") },
		func() error { return a.readFile("notes.txt") },
		func() error {
			return a.message(fmt.Sprintf("You said: %s\n\nI made notes.txt, changed its status from draft to done, and read it again. "+
				"Nothing in your project was touched.\n\nYour prompt had %d bytes, sha256 %x.", quoted, len(prompt), sha256.Sum256([]byte(prompt))))
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// field is one of a line's own.
type field struct {
	key   string
	value any
}

// say writes a line. It is flushed later: at a pause, or at the end of the turn.
func (a *agent) say(kind string, fields ...field) {
	b := a.out.AvailableBuffer()
	b = append(b, `{"type":`...)
	b = pluginapi.AppendString(b, kind)
	for _, f := range fields {
		b = append(b, ',')
		b = pluginapi.AppendString(b, f.key)
		b = append(b, ':')
		if s, ok := f.value.(string); ok {
			b = pluginapi.AppendString(b, s)
			continue
		}
		data, err := json.Marshal(f.value)
		if err != nil {
			data = []byte("null")
		}
		b = append(b, data...)
	}
	a.out.Write(append(b, '}', '\n'))
}

// pause waits for d, or less if the turn is interrupted.
func (a *agent) pause(d time.Duration) error {
	if d <= 0 {
		select {
		case <-a.interrupt:
			if a.stopped() {
				return interrupted{}
			}
		default:
		}
		return nil
	}
	a.out.Flush()
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return nil
		case <-a.interrupt:
			if a.stopped() {
				return interrupted{}
			}
		}
	}
}

func (a *agent) think(text string) error {
	for _, word := range strings.SplitAfter(text, " ") {
		a.say("think", field{"text", word})
		a.thought++
		if err := a.pause(a.pace); err != nil {
			return err
		}
	}
	a.say("think_end")
	return nil
}

func (a *agent) message(text string) error {
	for _, word := range strings.SplitAfter(text, " ") {
		a.say("text", field{"text", word})
		a.words++
		if err := a.pause(a.pace); err != nil {
			return err
		}
	}
	a.say("message_end")
	return nil
}

// call starts a tool call and returns its id.
func (a *agent) call(name string, input map[string]any, more ...field) string {
	a.calls++
	id := fmt.Sprintf("call-%d", a.calls)
	a.say("tool", append([]field{{"id", id}, {"name", name}, {"input", input}}, more...)...)
	return id
}

// done ends a tool call and gives people time to see it.
func (a *agent) done(id, output string, err error) error {
	if err != nil {
		a.say("tool_failed", field{"id", id}, field{"error", err.Error()})
	} else {
		a.say("tool_done", field{"id", id}, field{"output", output})
	}
	return a.pause(5 * a.pace)
}

// file returns the path of a file in the scratch folder, which it makes.
func (a *agent) file(name string) (string, error) {
	if a.scratch == "" {
		dir, err := os.MkdirTemp("", "amux-demo-")
		if err != nil {
			return "", err
		}
		a.scratch = dir
	}
	return filepath.Join(a.scratch, name), nil
}

func (a *agent) writeFile(name, content string) error {
	path, err := a.file(name)
	if err != nil {
		return err
	}
	id := a.call("write_file", map[string]any{"path": path, "content": content}, field{"path", path}, field{"bytes", len(content)})
	return a.done(id, "wrote "+count(len(content), "byte"), os.WriteFile(path, []byte(content), 0o600))
}

func (a *agent) editFile(name, before, after string) error {
	path, err := a.file(name)
	if err != nil {
		return err
	}
	diff := "-" + before + "\n+" + after + "\n"
	id := a.call("edit_file", map[string]any{"path": path, "old": before, "new": after}, field{"path", path}, field{"diff", diff})
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(data), before, after, 1)), 0o600)
	}
	return a.done(id, "replaced 1 line", err)
}

func (a *agent) readFile(name string) error {
	path, err := a.file(name)
	if err != nil {
		return err
	}
	id := a.call("read_file", map[string]any{"path": path}, field{"path", path})
	data, err := os.ReadFile(path)
	return a.done(id, string(data), err)
}

// ask sends a question or a request for permission and waits for the reply.
func (a *agent) ask(kind string, fields ...field) (line, error) {
	a.asks++
	id := fmt.Sprintf("ask-%d", a.asks)
	a.say(kind, append([]field{{"id", id}}, fields...)...)
	a.out.Flush()
	withdraw := func() {
		a.say("withdrawn", field{"id", id})
	}
	for {
		select {
		case l := <-a.replies:
			if l.ID == id {
				return l, nil
			}
		case <-a.interrupt:
			if a.stopped() {
				withdraw()
				return line{}, interrupted{}
			}
		case <-a.noReplies:
			select { // what came before the end still counts
			case l := <-a.replies:
				if l.ID == id {
					return l, nil
				}
				continue
			default:
			}
			withdraw()
			return line{}, &failed{text: "nobody answers: stdin has ended"}
		}
	}
}
