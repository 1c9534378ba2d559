package settings

import (
	"errors"
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
