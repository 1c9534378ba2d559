package hosttest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/hosttest"
	"github.com/amux-dev/amux/pluginapi"
)

func file(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What a request to write a file whole would change is an event, for files in the run's
// folder alone; and a replay, for which the file has other content, makes the same.
func TestPreview(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	file(t, filepath.Join(dir, "here"), "old\n")
	file(t, filepath.Join(outside, "secret"), "key\n")
	for name, to := range map[string]string{"link": filepath.Join(outside, "secret"), "folder": outside, "dangling": filepath.Join(outside, "new")} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	long := strings.Repeat("a line\n", 20_000)
	paths := []string{
		"here", "new", filepath.Join("not", "there", "yet"), filepath.Join(outside, "secret"), "link", filepath.Join("folder", "secret"),
		filepath.Join("folder", "new"), "dangling", filepath.Join("..", filepath.Base(outside), "secret"), "long", "",
	}
	h := hosttest.New(t, func(a *hosttest.Agent) {
		a.Prompt()
		for _, path := range paths {
			content := "new\n"
			if path == "long" {
				content = long
			}
			input, err := json.Marshal(map[string]string{"content": content})
			if err != nil {
				t.Error(err)
			}
			request := pluginapi.ApprovalRequest{Action: "write a file", ToolName: "Write", ToolKind: pluginapi.ToolFile, Input: input}
			if path != "" {
				request.Paths = []string{path}
			}
			a.Ask(request)
		}
	})
	run := start(t, h, host.RunSpec{Prompt: "go", Workspace: host.Workspace{Cwd: dir}, Permissions: host.Permissions{Approve: host.ApproveAsk}})
	previews, asked := map[string]pluginapi.ApprovalPreview{}, map[string]string{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for event, err := range run.Events(ctx, 1) {
		if err != nil {
			t.Fatalf("after previews of %v: %v", slices.Collect(maps.Keys(previews)), err)
		}
		switch e := event.Payload().(type) {
		case pluginapi.ApprovalRequest:
			path := strings.Join(e.Paths, "")
			asked[e.InteractionID] = path
			if path == "here" || path == "new" || path == "long" || strings.HasPrefix(path, "not") {
				continue // answered once the preview has come
			}
			if err := run.Deny(t.Context(), e.InteractionID, "no"); err != nil && !errors.Is(err, pluginapi.CodeValidation) {
				t.Error(err)
			}
		case pluginapi.ApprovalPreview:
			previews[asked[e.InteractionID]] = e
			if err := run.Deny(t.Context(), e.InteractionID, "no"); err != nil {
				t.Error(err)
			}
		}
	}
	if len(previews) != 4 {
		t.Errorf("previews of %d files: %v", len(previews), previews)
	}
	if got := previews["here"]; got.Diff != "--- here\n+++ here\n@@ -1 +1 @@\n-old\n+new\n" || got.Path != "here" || got.Truncated {
		t.Errorf("%+v", got)
	}
	if got := previews["new"]; got.Diff != "--- /dev/null\n+++ new\n@@ -0,0 +1 @@\n+new\n" {
		t.Errorf("%+v", got)
	}
	if got := previews["long"]; !got.Truncated || len(got.Diff) > 64<<10 || !strings.HasSuffix(got.Diff, "\n+a line\n") {
		t.Errorf("the long one has %d bytes", len(got.Diff))
	}
	var live bytes.Buffer
	if err := run.CopyEvents(t.Context(), &live, 1); err != nil {
		t.Fatal(err)
	}
	file(t, filepath.Join(dir, "here"), "other\n")
	var again bytes.Buffer
	if err := h.ReplayWith(t.Context(), run.ID(), host.ReplayOptions{}, &again); err != nil {
		t.Fatal(err)
	}
	if live.String() != again.String() {
		t.Errorf("a replay makes\n%s\nand not\n%s", again.String(), live.String())
	}
}
