package real

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

// TestQwenLimits checks that a limit which the user set in Qwen's own settings ends a run
// as that limit, and not as a crash.
func TestQwenLimits(t *testing.T) {
	unlessMissing(t, qwenRow)
	for _, limit := range []struct {
		setting string
		code    pluginapi.Code
	}{
		{`"maxSessionTurns": 2`, pluginapi.CodeTurnLimit},
		{`"maxToolCalls": 2`, pluginapi.CodeTurnLimit},
		{`"maxToolCallsPerTurn": 2`, pluginapi.CodeTurnLimit},
		{`"maxWallTimeSeconds": 4`, pluginapi.CodeTimeout},
		// It stops after the tool, calls that a success and says nothing of the limit.
		{`"sessionTokenLimit": 10`, pluginapi.CodeAgentFailed},
	} {
		name, _, _ := strings.Cut(strings.Trim(limit.setting, `"`), `"`)
		if !selected(qwenRow, "besides: "+name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRun(t, qwenRow)
			writeFile(t, filepath.Join(r.dir, "home", ".qwen", "settings.json"), `{
  "memory": {"enableManagedAutoMemory": false},
  "model": {"generationConfig": {"maxRetries": 0}, `+limit.setting+`},
  "general": {"enableAutoUpdate": false},
  "telemetry": {"enabled": false},
  "privacy": {"usageStatisticsEnabled": false}
}`)
			r.once("[fm:loop]", "--approve", "auto")
			if end := r.end(); end.Code != limit.code || r.retryable(end.Code) {
				t.Errorf("%s %s, retryable %v, want %s: %s", end.State, end.Code, r.retryable(end.Code), limit.code, end.Message)
			}
		})
	}
}
