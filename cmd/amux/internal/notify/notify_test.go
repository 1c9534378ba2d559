package notify

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/clitest"
	"github.com/amux-dev/amux/cmd/amux/internal/settings"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

func question(id string) pluginapi.Payload {
	return pluginapi.ApprovalRequest{InteractionID: id, Action: "Bash", Detail: "make \x1b]0;evil\x07" + id}
}

// answered hides a question that a rule has answered.
type answered struct{ *clitest.Run }

func (answered) Questions() []host.Question { return nil }

// What is told, of whatever pieces the events come in.
func TestWhatIsTold(t *testing.T) {
	t.Parallel()
	long := pluginapi.RunEnd{State: "failed", DurationMS: 60000}
	text := pluginapi.TextDelta{Delta: strings.Repeat("x", 3*mostLine)}
	for _, test := range []struct {
		name   string
		events []pluginapi.Payload
		after  time.Duration
		rules  bool
		want   string
	}{
		{"a question, once", []pluginapi.Payload{text, question("a"), text, pluginapi.InputRequired{InteractionID: "b", Question: "Colour?"}}, 0, false,
			"DGXP98 (alpha) asks: Bash make a|DGXP98 (alpha) asks: Colour?"},
		{"a rule has answered", []pluginapi.Payload{question("a")}, 0, true, ""},
		{"a long run", []pluginapi.Payload{text, long}, 0, false, "DGXP98 (alpha) has ended: failed"},
		{"a short run", []pluginapi.Payload{pluginapi.RunEnd{State: "completed", DurationMS: 59999}}, 0, false, ""},
		{"any run", []pluginapi.Payload{pluginapi.RunEnd{State: "completed"}}, -1, false, "DGXP98 (alpha) has ended: completed"},
		{"another limit", []pluginapi.Payload{long}, 2 * time.Minute, false, ""},
	} {
		whole := clitest.Finished(test.events...)
		for _, size := range []int{1 << 20, 1000, 7} {
			var run Run = whole
			if test.rules {
				run = answered{whole}
			}
			var terminal bytes.Buffer
			w := Watcher{Settings: settings.Notify{Terminal: "osc9", After: test.after}, Terminal: &terminal}
			w.Watch(t.Context(), pieces{run, size}, 1)
			got := strings.Join(strings.FieldsFunc(strings.ReplaceAll(terminal.String(), "\x1b]9;amux: ", ""), func(r rune) bool { return r == '\a' }), "|")
			if got != test.want {
				t.Errorf("%s, in pieces of %d: %q, want %q", test.name, size, got, test.want)
			}
		}
	}
}

// pieces gives a run's events in small pieces.
type pieces struct {
	Run
	size int
}

func (p pieces) CopyEvents(ctx context.Context, w io.Writer, from uint64) error {
	var all bytes.Buffer
	if err := p.Run.CopyEvents(ctx, &all, from); err != nil {
		return err
	}
	for all.Len() > 0 {
		if _, err := w.Write(all.Next(p.size)); err != nil {
			return err
		}
	}
	return nil
}

func TestTerminals(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		s    settings.Notify
		want string
	}{
		{settings.Notify{}, ""},
		{settings.Notify{Bell: true}, "\a"},
		{settings.Notify{Terminal: "off"}, ""},
		{settings.Notify{Terminal: "osc9", Bell: true}, "\x1b]9;amux: hi red日本\a\a"},
		{settings.Notify{Terminal: "osc777"}, "\x1b]777;notify;amux;hi red日本\a"},
	} {
		var terminal bytes.Buffer
		if Ring(&terminal, test.s, "hi\n\x1b[31mred\x07日本\u202e"); terminal.String() != test.want {
			t.Errorf("%+v: %q", test.s, terminal.String())
		}
	}
}
