package engine

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// Failure is an attempt that has failed for a reason that may pass.
type Failure struct {
	Attempt    int
	Code, Msg  string
	RetryAfter time.Duration    // that the provider asks for
	Cost       *pluginapi.Money // of the run so far
	Session    string           // of the agent; "" if it has none
	Tooled     bool             // a tool was called, in whatever attempt
}

// passing are the codes of failures that may be gone the next time.
var passing = []pluginapi.Code{
	pluginapi.CodeRateLimited, pluginapi.CodeOverloaded, pluginapi.CodeNetwork, pluginapi.CodeAgentCrash,
}

// mayPass reports that the attempt has failed by itself, without an answer, for a
// reason that may pass.
func (l *ledger) mayPass(end journal.State) bool {
	code := pluginapi.Code(end.Code)
	switch {
	case l.exit == nil || l.exit.Reason != "" || l.askedAt != 0 || l.interrupted || l.workDone || l.fault != nil:
		return false
	case end.To != Failed || !slices.Contains(passing, code):
		return false
	}
	return code == pluginapi.CodeAgentCrash || l.outcome.GetRetryable()
}

func (l *ledger) failure(end journal.State) Failure {
	return Failure{
		Attempt: l.number, Code: end.Code, Msg: end.Msg, RetryAfter: time.Duration(l.outcome.GetRetryAfterMs()) * time.Millisecond,
		Cost: l.cost, Session: l.session, Tooled: l.tooled,
	}
}

// Continued is the prompt of an attempt that goes on with the session of the last one.
func Continued(prompt string) string {
	return "An error has cut off your work on the message below. Go on where you were; do not do again what is done.\n\n" + prompt
}

// OptionsOf are the options of the attempt that follows a retry.
func OptionsOf(o *pb.RunOptions, retry *journal.Retry) *pb.RunOptions {
	if o == nil || retry == nil {
		return o
	}
	o = proto.CloneOf(o)
	o.MaxBudgetUsd = retry.Budget
	if retry.Resume != "" {
		o.Resume, o.ContinueLast, o.Fork = retry.Resume, false, false
		o.Prompt, o.Attachments = Continued(o.Prompt), nil
	}
	return o
}
