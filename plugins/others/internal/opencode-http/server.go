package opencodehttp

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/failure"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// server writes requests to the server behind the bridge, and knows what each response
// is about.
type server struct {
	cwd      string
	foreign  bool // it is not ours: each request names the directory
	requests int
	asked    map[string]string // requests without a response: id → what for
}

// request asks the server; what names the request when its response comes.
func (s *server) request(what, method, path string, body any, out *sdk.Out) {
	s.requests++
	id := strconv.Itoa(s.requests)
	s.asked[id] = what
	if s.foreign {
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		path += separator + "directory=" + url.QueryEscape(s.cwd)
	}
	line, err := json.Marshal(struct {
		ID     string `json:"id"`
		Method string `json:"method"`
		Path   string `json:"path"`
		Body   any    `json:"body,omitempty"`
	}{id, method, path, body})
	if err == nil {
		out.Write(append(line, '\n'))
	}
}

// response says what a response is about, and how the request failed if it did; ok is
// false for one that was not asked for.
func (s *server) response(line jsonl.Value) (what string, failed *pluginapi.Outcome, ok bool) {
	id := line.Text("id")
	what, ok = s.asked[id]
	delete(s.asked, id)
	if status, _ := line.Int("status"); ok && (status < 200 || status > 299) {
		failed = refusal(line)
	}
	return what, failed, ok
}

// refusals are last words of amux-bridge and of the server.
var refusals = []turn.Refusal{
	{Text: "refuses the password", Code: pluginapi.CodeAuth, Hint: "set " + passwordVariable + " to that server's password"},
	{Text: "cannot be reached", Code: pluginapi.CodeNetwork, Hint: "start it: opencode serve; or unset " + urlVariable},
	{Text: "it is another kind of server", Code: pluginapi.CodeConfig, Hint: "set " + urlVariable + " to the URL of opencode serve"},
	{Text: "Configuration is invalid", Code: pluginapi.CodeConfig},
}

// refusal reads a response that is an error.
func refusal(line jsonl.Value) *pluginapi.Outcome {
	body := line.Get("body")
	message := body.Text("data", "message")
	for _, other := range []string{line.Text("error"), line.Text("text"), body.Text("name"), "OpenCode refused it"} {
		if message == "" {
			message = other
		}
	}
	if body.Text("name") == "NotFoundError" && strings.Contains(message, "ession") {
		return &pluginapi.Outcome{Code: string(pluginapi.CodeSessionNotFound), Message: message}
	}
	return failure.Of(0, message)
}
