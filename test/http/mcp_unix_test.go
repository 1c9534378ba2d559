//go:build unix

package http

import (
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// bearer adds the token to what a client sends.
type bearer struct{ s *server }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.s.token)
	return http.DefaultTransport.RoundTrip(r)
}

// The tools of MCP, with the same scope and the same guard.
func TestMCP(t *testing.T) {
	t.Parallel()
	s := start(t)
	other := s.begin("hello", nil) // not through MCP
	connect := func(c *http.Client) (*mcp.ClientSession, error) {
		return mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).
			Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.url + "/mcp", HTTPClient: c, MaxRetries: -1}, nil)
	}
	if c, err := connect(http.DefaultClient); err == nil {
		c.Close()
		t.Error("without the token it answers")
	}
	c, err := connect(&http.Client{Transport: bearer{s}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	call := func(tool string, in map[string]any) string {
		t.Helper()
		out, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: in})
		if err != nil {
			t.Fatal(err)
		}
		return out.Content[0].(*mcp.TextContent).Text
	}
	started := call("run_start", map[string]any{"agent": "demo", "prompt": "hello", "cwd": s.Dir})
	_, id, _ := strings.Cut(started, `"run_id":"`)
	id, _, _ = strings.Cut(id, `"`)
	s.again() // nothing is lost with the server
	if got := call("run_start", map[string]any{"agent": "demo", "prompt": "hello", "cwd": s.Dir, "approve": "auto"}); !strings.Contains(got, "HTTP may not have a run with approve auto") {
		t.Errorf("run_start beyond [http] returns %s", got)
	}
	if got := call("run_wait", map[string]any{"run_ids": []string{id}}); !strings.Contains(got, `"completed"`) {
		t.Errorf("run_wait returns %s", got)
	}
	if got := call("run_list", map[string]any{"all": true}); !strings.Contains(got, id) || strings.Contains(got, other.ID) {
		t.Errorf("run_list returns %s", got)
	}
	if got := call("run_stop", map[string]any{"run_ids": []string{other.ID}}); !strings.Contains(got, "was started from here") {
		t.Errorf("run_stop of another run returns %s", got)
	}
}
