package host

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

// An event keeps its line, whatever is in it, and is not the caller's memory.
func FuzzParseEvent(f *testing.F) {
	f.Add([]byte(`{"type":"text_delta","run_id":"01J","seq":7,"time":"2026-01-02T03:04:05.6Z","agent":"demo","delta":"hi"}`))
	f.Add([]byte(`{"type":"of_later","seq":18446744073709551615,"type":"log","x":[{}]}`))
	f.Add([]byte(`null`))
	f.Add([]byte("{\"type\":\"\xff\"}"))
	f.Fuzz(func(t *testing.T, line []byte) {
		told := bytes.Clone(line)
		e, err := parseEvent(line)
		clear(line)
		if err != nil {
			if pluginapi.AsError(err).Code != pluginapi.CodeParse || e.Raw != nil {
				t.Errorf("%q: %+v, %v", told, e, err)
			}
			return
		}
		if !bytes.Equal(e.Raw, told) || !json.Valid(e.Raw) {
			t.Errorf("%q became %q", told, e.Raw)
		}
		if again, err := parseEvent(e.Raw); err != nil || again.Type != e.Type || again.Seq != e.Seq || !again.Time.Equal(e.Time) {
			t.Errorf("%q: %+v, then %+v, %v", told, e, again, err)
		}
	})
}
