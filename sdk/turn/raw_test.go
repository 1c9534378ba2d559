package turn

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

type rawEvents []string

func (r *rawEvents) RawEvent(t pluginapi.Type, object []byte) {
	*r = append(*r, string(t)+" "+string(object))
}

// A raw piece gives the event and the text that it would give once parsed.
func TestRaw(t *testing.T) {
	for _, inside := range []string{``, `plain`, `\"a\" \\ \/ \b\f\n\r\t`, `é 😀`, `end\\`} {
		var want string
		if err := json.Unmarshal([]byte(`"`+inside+`"`), &want); err != nil {
			t.Fatal(err)
		}
		var types []string
		var raw rawEvents
		s := stored(&types)
		message, tool := s.Stream("p"), s.StartTool("t", "Bash", "p", s)
		message.Text("m", "", s)
		if !message.Raw([]byte(inside), &raw) {
			t.Fatal("no message is open")
		}
		s.RawInput(tool, []byte(inside), &raw)
		if got, _ := message.Said(); got != want {
			t.Errorf("kept %q of %q", got, inside)
		}
		if got := string(tool.Streamed()); got != want {
			t.Errorf("kept %q of %q", got, inside)
		}
		wanted := rawEvents{
			`text_delta {"delta":"` + inside + `","parent_id":"p"}`,
			`tool_input_delta {"tool_call_id":"t","delta":"` + inside + `","parent_id":"p"}`,
		}
		if inside == "" {
			wanted = nil
		}
		if !slices.Equal(raw, wanted) {
			t.Errorf("got %q", raw)
		}
		message.End(s)
		if message.Raw([]byte("late"), &raw) {
			t.Error("a piece of nothing was taken")
		}
	}
}
