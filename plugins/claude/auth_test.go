package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/pluginapi"
)

func TestDetectAuth(t *testing.T) {
	home := t.TempDir()
	write := func(dir, credentials string) string {
		dir = filepath.Join(home, dir)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		os.WriteFile(filepath.Join(dir, ".credentials.json"), []byte(credentials), 0o600)
		os.WriteFile(filepath.Join(dir, ".claude.json"), []byte(`{"oauthAccount":{"emailAddress":"me@example.com"}}`), 0o600)
		return dir
	}
	future, past := time.Now().Add(time.Hour).UnixMilli(), time.Now().Add(-time.Hour).UnixMilli()
	good := write("good", fmt.Sprintf(`{"claudeAiOauth":{"accessToken":"secret","expiresAt":%d}}`, future))
	old := write("old", fmt.Sprintf(`{"claudeAiOauth":{"accessToken":"secret","expiresAt":%d}}`, past))
	renewed := write("renewed", fmt.Sprintf(`{"claudeAiOauth":{"accessToken":"secret","refreshToken":"secret","expiresAt":%d}}`, past))
	broken := write("broken", "{")
	for _, test := range []struct {
		name string
		os   string
		env  map[string]string
		want []string
	}{
		{"nothing", "linux", nil, []string{"anthropic unauthenticated  "}},
		{"macOS keychain", "darwin", nil, []string{"anthropic unknown perhaps the keychain, which amux does not read "}},
		{"key", "linux", map[string]string{"ANTHROPIC_API_KEY": "secret"}, []string{"anthropic authenticated env ANTHROPIC_API_KEY "}},
		{"key wins over login", "linux", map[string]string{"ANTHROPIC_API_KEY": "secret", "CLAUDE_CONFIG_DIR": good}, []string{"anthropic authenticated env ANTHROPIC_API_KEY "}},
		{"token", "linux", map[string]string{"CLAUDE_CODE_OAUTH_TOKEN": "secret"}, []string{"anthropic authenticated env CLAUDE_CODE_OAUTH_TOKEN "}},
		{"login", "linux", map[string]string{"CLAUDE_CONFIG_DIR": good}, []string{"anthropic authenticated " + good + "/.credentials.json me@example.com"}},
		{"expired", "linux", map[string]string{"CLAUDE_CONFIG_DIR": old}, []string{"anthropic expired " + old + "/.credentials.json "}},
		{"renews itself", "linux", map[string]string{"CLAUDE_CONFIG_DIR": renewed}, []string{"anthropic authenticated " + renewed + "/.credentials.json me@example.com"}},
		{"broken", "linux", map[string]string{"CLAUDE_CONFIG_DIR": broken}, []string{"anthropic unknown " + broken + "/.credentials.json "}},
		{"bedrock", "linux", map[string]string{"CLAUDE_CODE_USE_BEDROCK": "1"}, []string{"bedrock authenticated env CLAUDE_CODE_USE_BEDROCK ", "anthropic unauthenticated  "}},
		{"bedrock off", "linux", map[string]string{"CLAUDE_CODE_USE_BEDROCK": "0"}, []string{"anthropic unauthenticated  "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			resp, err := adapter{}.DetectAuth(t.Context(), &pluginapi.AuthRequest{
				Caller: &pluginapi.Caller{Home: filepath.Join(home, "empty"), Os: test.os, Env: test.env},
			})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range resp.States {
				got = append(got, s.Provider+" "+s.Status+" "+s.Found+" "+s.Identity)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if len(resp.Guidance) == 0 {
				t.Error("no guidance")
			}
		})
	}
}
