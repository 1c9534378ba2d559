//go:build unix

package fakecluster

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A cluster can be a process of its own, for tests that would need too many file descriptors else.
// It is told words, a line each, and answers with a line of JSON.

// Serve is the main function of such a process, which starts with its kubeconfig as JSON.
func Serve(o Options) {
	c := open(o)
	defer c.end()
	say := json.NewEncoder(os.Stdout)
	if say.Encode(c.Config()) != nil {
		return
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var answer any
		switch word, arg, _ := strings.Cut(lines.Text(), " "); word {
		case "count":
			answer = c.Count()
		case "runs":
			answer = c.Runs()
		case "drain":
			var node int
			_, _ = fmt.Sscan(arg, &node)
			answer = c.Drain(node)
		case "disconnect":
			c.Disconnect()
		}
		if say.Encode(answer) != nil {
			return
		}
	}
}

// Process is a cluster in a process of its own.
type Process struct {
	t      testing.TB
	config string
	in     io.Writer
	out    *json.Decoder
}

// StartProcess starts this test's program with a variable set, which has it Serve a cluster.
func StartProcess(t testing.TB, variable string) *Process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), variable), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	p := &Process{t: t, in: in, out: json.NewDecoder(out)}
	if err := p.out.Decode(&p.config); err != nil {
		t.Fatalf("the cluster does not start: %v", err)
	}
	return p
}

func (p *Process) ask(words string, answer any) {
	p.t.Helper()
	_, err := io.WriteString(p.in, words+"\n")
	if err == nil {
		err = p.out.Decode(answer)
	}
	if err != nil {
		p.t.Fatalf("the cluster does not answer: %v", err)
	}
}

// Config is that of Cluster, as the other methods are.
func (p *Process) Config() string { return p.config }

func (p *Process) Count() (n Count) {
	p.t.Helper()
	p.ask("count", &n)
	return n
}

func (p *Process) Runs() (runs []string) {
	p.t.Helper()
	p.ask("runs", &runs)
	return runs
}

func (p *Process) Drain(node int) (evicted []string) {
	p.t.Helper()
	p.ask(fmt.Sprintf("drain %d", node), &evicted)
	return evicted
}

func (p *Process) Disconnect() {
	p.t.Helper()
	p.ask("disconnect", new(any))
}
