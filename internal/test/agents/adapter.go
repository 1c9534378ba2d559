//go:build unix

package agents

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
)

// adapter knows the agent of this package. It does as it should until a line of
// the agent says otherwise:
//
//	do X            at once: panic, hang, exit, nap MILLISECONDS (then exit), goroutine-panic, print, orphan, eat, hoard MIB, recurse, files, outside FOLDER,
//	                big N, events N, outcomes, fail CODE [MILLISECONDS] (an outcome that may pass, and when)
//	arm X           the same when the agent has exited
//	event TYPE OBJ  an event as it is
//	write N         N lines for the agent's stdin
//
// Resumer is the name of an agent that can resume a session.
const Resumer = "resumer"

type adapter struct {
	id      string
	trouble Trouble
}

var _ sdk.Converser = adapter{}

func (a adapter) Describe() *pluginapi.Agent {
	if a.trouble == PanicAtDescribe {
		panic("no description today")
	}
	if a.trouble == HangAtDescribe {
		time.Sleep(time.Hour)
	}
	return describe(a.id)
}

func describe(id string) *pluginapi.Agent {
	agent := &pluginapi.Agent{
		Id: id, DisplayName: id, Summary: "an agent of the tests",
		Capabilities: &pluginapi.Capabilities{MultiTurn: true, TextStreaming: true, Approvals: true, Tools: true, PtyOptional: true, JsonSchema: true, Resume: id == Resumer},
		EventTypes:   []string{"token_usage", "cost"},
		AuthProbes:   []*pluginapi.AuthProbe{{Provider: "fake", Method: "api_key", Env: "FAKE_KEY"}},
		AuthGuidance: []string{"set FAKE_KEY"}, CallerEnv: []string{"FAKE_KEY"},
	}
	own(agent)
	return agent
}

func (a adapter) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	switch a.trouble {
	case PanicAtPlan:
		panic("no plan today")
	case HoardAtPlan:
		hoard(200)
	case HangAtPlan:
		time.Sleep(time.Hour)
	case ExitAtPlan:
		os.Exit(7)
	}
	if a.trouble == ShellAtPlan {
		return &pluginapi.Plan{Program: "touch pwned", Shell: true}, nil
	}
	if a.trouble == BridgeAtPlan {
		return &pluginapi.Plan{Program: pluginapi.Bridge, Stdin: pb.Stdin_STDIN_OPEN}, nil
	}
	plan := &pluginapi.Plan{
		Program: self(), Args: []string{castArg, "agent"}, Stdin: pb.Stdin_STDIN_OPEN, SessionId: req.SessionId,
		Pty: req.Options.GetPty(),
	}
	if id := req.Options.GetResume(); id != "" {
		plan.SessionId = id
	} else if req.Attempt > 1 {
		plan.SessionId += "-" + strconv.Itoa(int(req.Attempt))
	}
	if prompt := req.Options.GetPrompt(); strings.HasPrefix(prompt, "deaf\n") {
		plan.Args = append(plan.Args, prompt)
	} else if script, ok := strings.CutPrefix(prompt, "shell\n"); ok {
		plan.Program, plan.Args = "/bin/sh", []string{"-c", script}
	}
	return plan, nil
}

func (a adapter) Converse(start *pluginapi.Start) (sdk.Conversation, error) {
	return &conversation{session: start.GetSessionId(), newer: a.trouble == Newer}, nil
}

// conversation is the codec of one run.
type conversation struct {
	session string
	newer   bool // shouts its first line, and notes the end of each turn
	turns   int
	text    []byte
	armed   string
	pending map[string]bool
	outcome bool
	eaten   [][]byte
	opened  []*os.File
}

func (c *conversation) Handle(in *pluginapi.Input, out *sdk.Out) error {
	switch in.Kind {
	case pb.InputKind_INPUT_STDOUT:
		c.stdout(in.Data, out)
	case pb.InputKind_INPUT_STDERR:
		out.Log("stderr", in.Data)
	case pb.InputKind_INPUT_PROMPT:
		out.Write(fmt.Appendf(nil, "prompt %s\n", pluginapi.AppendString(nil, string(in.Data))))
	case pb.InputKind_INPUT_APPROVE, pb.InputKind_INPUT_DENY:
		if !c.pending[in.Id] {
			return nil
		}
		delete(c.pending, in.Id)
		if in.Kind == pb.InputKind_INPUT_APPROVE {
			out.Event(pluginapi.ApprovalGranted{InteractionID: in.Id})
			out.Write(fmt.Appendf(nil, "reply %s granted\n", in.Id))
		} else {
			out.Event(pluginapi.ApprovalDenied{InteractionID: in.Id, Reason: string(in.Data)})
			out.Write(fmt.Appendf(nil, "reply %s denied\n", in.Id))
		}
	case pb.InputKind_INPUT_END:
		out.CloseStdin()
	case pb.InputKind_INPUT_EXIT:
		if c.armed != "" {
			c.misbehave(c.armed, out)
		}
		if !c.outcome {
			out.Outcome(sdk.ExitOutcome(in.GetExit()))
		}
	}
	return nil
}

func (c *conversation) stdout(line []byte, out *sdk.Out) {
	verb, rest, _ := strings.Cut(string(line), " ")
	switch verb {
	case "t":
		if c.newer && len(c.text) == 0 {
			rest = strings.ToUpper(rest)
		}
		c.text = append(append(c.text[:0], rest...), '\n')
		out.Event(pluginapi.TextDelta{Delta: rest + "\n"})
	case "got", "pid":
		out.Event(pluginapi.Debug{Level: "info", Message: string(line)})
	case "hello":
		out.Event(pluginapi.SessionStart{SessionID: c.session, Version: "1"})
	case "turn":
		out.TurnStarted()
		out.Event(pluginapi.TurnStart{TurnIndex: c.turns})
		c.outcome = false
	case "ask":
		if c.pending == nil {
			c.pending = map[string]bool{}
		}
		c.pending[rest] = true
		out.Event(pluginapi.ApprovalRequest{InteractionID: rest, Action: "shell", ToolName: "shell", Detail: "rm " + rest})
	case "usage":
		var input, output int64
		fmt.Sscan(rest, &input, &output)
		out.Event(pluginapi.TokenUsage{InputTokens: &input, OutputTokens: &output})
		out.Event(pluginapi.Cost{Cost: pluginapi.Money{USD: float64(input+output) / 1e6}})
	case "end":
		if c.newer {
			out.Event(pluginapi.Debug{Level: "info", Message: "a turn ends"})
		}
		out.Event(pluginapi.MessageStop{Text: string(c.text)})
		out.Event(pluginapi.TurnEnd{TurnIndex: c.turns})
		c.turns++
		out.Outcome(&pluginapi.Outcome{})
		c.outcome = true
		out.Idle()
	case "event":
		kind, object, _ := strings.Cut(rest, " ")
		out.RawEvent(pluginapi.Type(kind), []byte(object))
	case "write":
		n, _ := strconv.Atoi(rest)
		for i := range n {
			out.Write(fmt.Appendf(nil, "note %d\n", i+1))
		}
	case "arm":
		c.armed = rest
	case "do":
		c.misbehave(rest, out)
	case "breach":
	default:
		out.Log("stdout", line)
	}
}

// recurse calls itself until the stack is full.
func recurse(depth int) int {
	var room [64]int
	for i := range room {
		room[i] = depth + i
	}
	if depth < 0 {
		return 0 // never: it counts up from 0
	}
	return recurse(depth+1) + room[depth%len(room)]
}

func (c *conversation) misbehave(what string, out *sdk.Out) {
	what, rest, _ := strings.Cut(what, " ")
	n, _ := strconv.Atoi(rest)
	switch what {
	case "panic":
		panic("told to panic")
	case "goroutine-panic":
		go panic("told to panic elsewhere")
		time.Sleep(time.Hour)
	case "hang":
		time.Sleep(time.Hour)
	case "nap": // nap MILLISECONDS, and then the end
		time.Sleep(time.Duration(n) * time.Millisecond)
		os.Exit(9)
	case "exit":
		os.Exit(9)
	case "eat":
		for {
			c.eaten = append(c.eaten, bytes.Repeat([]byte{1}, 64<<20))
		}
	case "hoard": // hoard MIB, and hang
		c.eaten = append(c.eaten, bytes.Repeat([]byte{1}, n<<20))
		time.Sleep(time.Hour)
	case "recurse":
		debug.SetMaxStack(32 << 20) // the limit of one gigabyte takes its time
		recurse(1)
	case "files":
		for n := 0; ; n++ {
			f, err := os.Open(os.DevNull)
			if err != nil {
				panic(fmt.Sprintf("no more than %d files: %v", n, err))
			}
			c.opened = append(c.opened, f)
		}
	case "outside":
		file := filepath.Join(rest, "file")
		allowed := 0
		for _, err := range []error{
			os.WriteFile(file, []byte("mine"), 0o600), os.Truncate(file, 0), os.Rename(file, "file"), os.Link(file, "linked"),
			os.WriteFile(filepath.Join(rest, "new"), nil, 0o600), os.Mkdir(filepath.Join(rest, "new"), 0o700),
			os.Symlink("/", filepath.Join(rest, "new")), os.RemoveAll(rest),
		} {
			if err == nil {
				allowed++
			}
		}
		panic(fmt.Sprintf("%d changes were allowed outside, and inside %v", allowed, os.WriteFile("inside", []byte("x"), 0o600)))
	case "print":
		fmt.Println("what does this do on stdout?")
	case "orphan":
		// It holds stdout and stderr of the plugin open.
		cmd := exec.Command("sleep", "300")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err == nil {
			os.Exit(9)
		}
	case "big":
		out.Event(pluginapi.TextDelta{Delta: strings.Repeat("x", n)})
	case "events":
		for i := range n {
			out.Event(pluginapi.TextDelta{Delta: strconv.Itoa(i)})
		}
	case "fail":
		code, after, _ := strings.Cut(rest, " ")
		ms, _ := strconv.ParseUint(after, 10, 64)
		out.Outcome(&pluginapi.Outcome{Code: code, Message: "told to fail", Retryable: true, RetryAfterMs: ms})
		c.outcome = true
	case "outcomes":
		out.Outcome(&pluginapi.Outcome{Code: string(pluginapi.CodeRateLimited), Message: "not yet"})
		out.Outcome(&pluginapi.Outcome{Code: string(pluginapi.CodeOverloaded), Message: "the last one wins"})
		c.outcome = true
	}
}
