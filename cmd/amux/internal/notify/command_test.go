//go:build unix

package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amux-dev/amux/cmd/amux/internal/clitest"
	"github.com/amux-dev/amux/cmd/amux/internal/settings"
	"github.com/amux-dev/amux/pluginapi"
)

// The command gets all of it as JSON, and a line in its environment. One that fails is
// one warning.
func TestCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "told")
	run := clitest.Finished(question("a"), question("b"), pluginapi.RunEnd{State: "completed", DurationMS: 90000})
	warnings := 0
	w := Watcher{
		Settings: settings.Notify{Command: settings.Command{Argv: []string{"/bin/sh", "-c", `cat >> "$1"; echo "$AMUX_EVENT $AMUX_RUN $AMUX_AGENT $AMUX_TEXT" >> "$1.env"; exit 1`, "sh", file}}},
		Env:      []string{"PATH=" + os.Getenv("PATH")},
		Warn:     func(format string, args ...any) { warnings++; t.Logf("warning: "+format, args...) },
	}
	w.Watch(t.Context(), run, 1)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var told []message
	for line := range bytes.Lines(data) {
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		told = append(told, m)
	}
	if len(told) != 3 || told[0].Event != "question" || told[0].RunID != clitest.RunID || told[0].Question.ID != "a" || told[1].Question.ID != "b" ||
		told[2].Event != "end" || !strings.Contains(string(told[2].End), `"state":"completed"`) {
		t.Errorf("told %s", data)
	}
	env, err := os.ReadFile(file + ".env")
	if want := fmt.Sprintf("question %s alpha DGXP98 (alpha) asks for approval\n", clitest.RunID); err != nil || !strings.HasPrefix(string(env), want) {
		t.Errorf("environment %q, %v", env, err)
	}
	if warnings != 1 {
		t.Errorf("%d warnings", warnings)
	}
}
