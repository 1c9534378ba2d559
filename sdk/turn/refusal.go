package turn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/failure"
	"github.com/amux-dev/amux/sdk/pattern"
)

// Refusal is one reason why an agent refuses to start.
type Refusal struct {
	Text string // a part of what it says on stderr
	Code pluginapi.Code
	Hint string
}

// Death is the end of a process that did not say how its work went.
type Death struct {
	Agent    string // its name in messages
	Exit     *pluginapi.Exit
	Stderr   *Stderr
	Refusals []Refusal
	// Began: it had opened its session, so that what follows is no refusal to start.
	Began bool
	// Start is that of the conversation; nil: nothing is known of the command line.
	Start *pluginapi.Start
	// Tested is the version of the agent that the adapter was tested with.
	Tested string
}

// Outcome tells a refusal from a crash. A refusal is AGENT_FAILED if its words are not
// known, and nothing that another attempt would change; a crash may be tried again.
func (d Death) Outcome() *pluginapi.Outcome {
	if o := d.refused(); o != nil {
		return o
	}
	text := d.Stderr.Text()
	if code := d.Exit.GetCode(); !d.Began && d.Exit.GetSignal() == "" && 0 < code && code <= signalled {
		if o := d.unknownFlag(text); o != nil {
			return o
		}
		if said := complaint(text); said != "" {
			return failure.Of(failure.Status(said), said)
		}
	}
	how := "was ended by " + d.Exit.GetSignal()
	if d.Exit.GetSignal() == "" {
		how = fmt.Sprintf("exited with code %d", d.Exit.GetCode())
	}
	message := d.Agent + " " + how + " without a result"
	if last := lastLine(text); last != "" {
		message += ": " + last
	}
	return &pluginapi.Outcome{Code: string(pluginapi.CodeAgentCrash), Message: message, Retryable: true}
}

// signalled is the exit code above which a shell says that a signal ended the program.
const signalled = 128

// tell emits an outcome that is no success, with its event; that of a crash is the host's.
// window is how many tokens the model takes, if that is known.
func tell(o *pluginapi.Outcome, guidance []string, window *int64, out *sdk.Out) {
	if o.Code != string(pluginapi.CodeAgentCrash) {
		event := failure.Event(o, guidance)
		if e, ok := event.(pluginapi.ContextExceeded); ok && e.MaxTokens == nil {
			e.MaxTokens = window
			event = e
		}
		out.Event(event)
	}
	out.Outcome(o)
}

// refused is the outcome of a refusal that the adapter knows; nil: there is none.
func (d Death) refused() *pluginapi.Outcome {
	text := d.Stderr.Text()
	for _, r := range d.Refusals {
		for line := range strings.Lines(text) {
			if strings.Contains(line, r.Text) && !strings.HasPrefix(strings.TrimSpace(line), "WARNING") {
				return &pluginapi.Outcome{Code: string(r.Code), Message: trimPrefixes(line), Hint: r.Hint}
			}
		}
	}
	return nil
}

// flagPattern is how commander, clap, yargs, argparse, cobra and Node.js word a flag that
// they do not know. yargs leaves its dashes out.
var flagPattern = pattern.New(`(?i)\b(?:unknown|unexpected|unrecognized|unrecognised|bad|invalid|nonexistent) (?:long |short )?(?:flag|option|argument)s?(?: provided)?:? *['"` + "`" + `]?(-{0,2}[a-z0-9][\w-]*)`)

// unknownFlag tells who gave the agent a flag that it does not know: amux, if the flag is
// one of the plan and none of the user's values, or the user. nil: it is another refusal.
func (d Death) unknownFlag(text string) *pluginapi.Outcome {
	m := flagPattern.FindStringSubmatchIndex(text)
	if m == nil {
		return nil
	}
	flag := text[m[2]:m[3]]
	message := lineAt(text, m[2])
	named := func(name string) bool { return strings.TrimLeft(name, "-") == strings.TrimLeft(flag, "-") }
	ours := slices.ContainsFunc(d.Start.GetFlags(), named)
	opts := d.Start.GetOptions()
	for _, value := range []string{opts.GetPrompt(), opts.GetModel(), opts.GetEffort(), opts.GetResume(), opts.GetSystemPrompt()} {
		word, _, _ := strings.Cut(value, "=")
		if strings.HasPrefix(word, "-") && named(word) {
			ours = false
		}
	}
	version := d.Start.GetProgramVersion()
	o := &pluginapi.Outcome{Message: message}
	switch {
	case !ours && (len(d.Start.GetFlags()) > 0 || !older(version, d.Tested)):
		if !strings.HasPrefix(flag, "-") {
			flag = "--" + flag
		}
		o.Code, o.Message = string(pluginapi.CodeValidation), d.Agent+" does not know the flag "+flag+": "+message
		o.Hint = "amux does not pass " + flag + ": look at the command that starts " + d.Agent + " (a wrapper, an alias, config.toml), or at a value that begins with a dash"
	case older(version, d.Tested):
		o.Code = string(pluginapi.CodeAgentNotInstalled)
		o.Hint = "this " + d.Agent + " (" + version + ") is too old; amux is tested with " + d.Tested
	default:
		o.Code = string(pluginapi.CodeAgentFailed)
		o.Hint = "amux passes " + flag + " to " + d.Agent
		if d.Tested != "" {
			o.Hint += "; it is tested with version " + d.Tested
		}
	}
	return o
}

// older compares versions number by number; what has no number is not older.
func older(version, than string) bool {
	a, b := numbers(version), numbers(than)
	return len(a) > 0 && len(b) > 0 && slices.Compare(a, b) < 0
}

var numberPattern = pattern.New(`^\D{0,2}(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?`)

func numbers(version string) []int {
	m := numberPattern.FindStringSubmatch(version)
	if m == nil {
		return nil
	}
	var all []int
	for _, digits := range m[1:] {
		n, _ := strconv.Atoi(digits)
		all = append(all, n)
	}
	return all
}

// complaintPattern begins a line that says why; stackPattern is one that does not.
var (
	complaintPattern = pattern.New(`(?i)^(?:\w+: )?(?:\w*error|fatal|panic)\b[^\n]{0,40}[:\]] `)
	stackPattern     = pattern.New(`^(?:\s+at |\s+File "|Node\.js v\d|\s*[\^~|]+\s*$|\s*$)`)
)

// complaint is the line of stderr that says most of why the agent ended: the last that
// calls itself an error, or else the last that is not of a stack.
func complaint(text string) string {
	said := ""
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\r\n"); complaintPattern.MatchString(line) {
			said = line
		}
	}
	if said == "" {
		said = lastLine(text)
	}
	return trimPrefixes(said)
}

// lastLine is the last line that is not of a stack.
func lastLine(text string) string {
	last := ""
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\r\n"); !stackPattern.MatchString(line) {
			last = line
		}
	}
	return last
}

// lineAt is the line of text around i.
func lineAt(text string, i int) string {
	from := strings.LastIndexByte(text[:i], '\n') + 1
	line, _, _ := strings.Cut(text[from:], "\n")
	return trimPrefixes(line)
}

func trimPrefixes(line string) string {
	line = strings.TrimSpace(line)
	return strings.TrimPrefix(strings.TrimPrefix(line, "error: "), "Error: ")
}
