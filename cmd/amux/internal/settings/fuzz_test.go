package settings

import (
	"errors"
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

func FuzzProjectFile(f *testing.F) {
	for _, seed := range []string{"", `model = "m"`, "tags = [\"a\"]\ntimeout = \"1h\"", "[agents.x]\nadapter = \"command\"", "a.b.c = {", "\xef\xbb\xbfagent = ''"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s Settings
		if err := s.parse("config.toml", data, true); err != nil && !errors.Is(err, pluginapi.CodeConfig) {
			t.Fatalf("not a typed error: %v", err)
		}
		if s.Approve != "" || s.Retry != 0 || s.MaxRuns != 0 || s.AlwaysVerify || s.AutoMTLS || s.Require != "" ||
			s.Grace != 0 || s.ProjectIndex != nil || s.DevOverrides != nil || s.Agents != nil {
			t.Fatalf("a project has set what is the user's alone: %+v", s)
		}
	})
}

// The user's own file may say more, and may be wrong in more ways.
func FuzzUserFile(f *testing.F) {
	for _, seed := range []string{
		"", "approve = \"rules\"\nallow = [\"Bash(go test *)\"]", "[agents.x]\nadapter = \"command\"\ncommand = [\"a\", \"b\"]", "[agents.x]\nadapter = \"acp\"\ncommand = \"goose acp\"",
		"grace = \"5s\"\nmax_runs = 4\nsync = \"always\"\nproject_index = [\"/a\"]", "[plugins]\n", "[[agents]]", "agents = 1", "timeout = \"-1h\"", "max_runs = 1e999", "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s Settings
		err := s.parse("config.toml", data, false)
		if err == nil {
			return
		}
		if !errors.Is(err, pluginapi.CodeConfig) || !strings.HasPrefix(err.Error(), "config.toml") || strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Fatalf("no typed error of one line that names the file: %q", err.Error())
		}
	})
}
