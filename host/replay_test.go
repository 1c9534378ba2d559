//go:build linux

package host_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/eventdiff"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi"
)

// replayWith replays with the plugin in a folder, and returns what that differs in.
func replayWith(t *testing.T, h *host.Host, r *host.Run, dir string) (events, diff, plugin string) {
	t.Helper()
	var made bytes.Buffer
	o := host.ReplayOptions{Plugin: dir, OnPlugin: func(name, version string) { plugin = name + " " + version }}
	if err := h.ReplayWith(context.Background(), r.ID(), o, &made); err != nil {
		t.Fatal(err)
	}
	events = made.String()
	var out strings.Builder
	differ, err := eventdiff.Write(&out, bytes.NewReader(copied(t, r)), &made, func() string { return "" })
	if err != nil || differ != (out.Len() > 0) {
		t.Fatal(differ, err)
	}
	return events, out.String(), plugin
}

// fileSums are the files of a folder and what they hold.
func fileSums(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			var data []byte
			data, err = os.ReadFile(path)
			files[path] = string(data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Another version of a plugin makes the events of a recorded run, also of one that was
// started again and had a plan for each attempt; the record stays as it was.
func TestReplayWithAnotherVersion(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	for dir, trouble := range map[string]agents.Trouble{"same": agents.Healthy, "newer": agents.Newer} {
		if err := agents.Install(filepath.Join(s.Root, dir), "fake", trouble); err != nil {
			t.Fatal(err)
		}
	}
	h := s.Host()
	same, newer := filepath.Join(s.Root, "same", "fake"), filepath.Join(s.Root, "newer", "fake")
	for name, spec := range map[string]host.RunSpec{
		"one turn": {Prompt: "say hello\nsay world\nend\nexit 0"},
		"attempts": {Prompt: "say hello\nsay world\nearly 1 do fail OVERLOADED 1\nearly 1 exit 1\nend\nexit 0", Retry: &host.Retry{MaxAttempts: 2}},
		"approval": {Prompt: "say hello\nsay world\nask it\nend\nexit 0", Permissions: host.Permissions{Approve: host.ApproveAuto}},
	} {
		spec.Agent, spec.Cwd = "fake", t.TempDir() // where the agent counts its starts
		r := s.Start(h, spec)
		r.Wait(context.Background())
		recorded := string(copied(t, r))
		before := fileSums(t, r.Dir())
		if events, diff, plugin := replayWith(t, h, r, same); diff != "" || events != recorded || plugin != "fake 1.0.0" {
			t.Errorf("%s, the same version: plugin %s\n%s", name, plugin, diff)
		}
		for _, path := range []string{newer, filepath.Join(newer, agents.Executable("fake"))} {
			events, diff, plugin := replayWith(t, h, r, path)
			if plugin != "fake 2.0.0" || events == recorded {
				t.Errorf("%s: plugin %s", name, plugin)
			}
			if !strings.Contains(diff, "text_delta @@\n-delta: \"hello\\n\"\n+delta: \"HELLO\\n\"\n") || !strings.Contains(diff, "debug @@\n+level: \"info\"\n+message: \"a turn ends\"\n") ||
				strings.Contains(strings.ToLower(diff), "world") || strings.Contains(diff, "run_end") {
				t.Errorf("%s:\n%s", name, diff)
			}
			if spec.Retry != nil && strings.Count(diff, "HELLO") != 2 {
				t.Errorf("%s: want both attempts in\n%s", name, diff)
			}
		}
		after := fileSums(t, r.Dir())
		if len(before) != len(after) {
			t.Errorf("%s: %d files in the record, %d before", name, len(after), len(before))
		}
		for path, data := range before {
			if after[path] != data {
				t.Errorf("%s: %s has changed", name, path)
			}
		}
		if again := string(replay(t, h, r.ID())); again != recorded {
			t.Errorf("%s: without the other plugin: %s", name, agents.Difference(again, recorded))
		}
	}
}

// What is no plugin for the run is refused before anything is written.
func TestReplayWithNoPlugin(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	folder := func(name string) string { return filepath.Join(s.Root, name) }
	must(agents.Install(folder("other"), "stranger", agents.Healthy))
	must(agents.Install(folder("liar"), "fake", agents.OtherVersion))
	must(agents.Install(folder("hollow"), "fake", agents.Healthy))
	must(os.Remove(filepath.Join(folder("hollow"), "fake", agents.Executable("fake"))))
	must(os.Mkdir(folder("empty"), 0o700))
	for dir, files := range map[string]map[string]string{
		"torn":     {"amux-plugin.toml": "name ="},
		"nameless": {"amux-plugin.toml": "manifest = 1\n"},
		"words":    {"describe.json": "hello"},
		"bare":     {"describe.json": `{"plugin":"fake","version":"1.0.0"}`},
	} {
		must(os.Mkdir(folder(dir), 0o700))
		for name, text := range files {
			must(os.WriteFile(filepath.Join(folder(dir), name), []byte(text), 0o600))
		}
	}
	h := s.Host()
	r := s.Start(h, host.RunSpec{Agent: "fake", Prompt: "say hello\nend\nexit 0"})
	r.Wait(context.Background())
	for _, test := range []struct {
		dir  string
		code pluginapi.Code
		want string
	}{
		{"absent", pluginapi.CodePluginNotFound, "absent: no such file or directory"},
		{"empty", pluginapi.CodePluginInvalid, "holds no plugin: there is neither amux-plugin.toml nor describe.json"},
		{"torn", pluginapi.CodePluginInvalid, "amux-plugin.toml"},
		{"nameless", pluginapi.CodePluginInvalid, "name"},
		{"words", pluginapi.CodePluginInvalid, "describe.json"},
		{"bare", pluginapi.CodePluginInvalid, "names no agent"},
		{"other/stranger", pluginapi.CodeValidation, "is one of agent fake, which plugin stranger 1.0.0 does not serve"},
		{"hollow/fake", pluginapi.CodePluginInvalid, agents.Executable("fake")},
		{"liar/fake", pluginapi.CodePluginInvalid, `says that it has version "9.9.9"`},
	} {
		var made bytes.Buffer
		err := h.ReplayWith(context.Background(), r.ID(), host.ReplayOptions{Plugin: folder(test.dir)}, &made)
		e := pluginapi.AsError(err)
		if e == nil || e.Code != test.code || !strings.Contains(e.Error(), test.want) || strings.Contains(e.Error(), "\n") {
			t.Errorf("%s: %v", test.dir, err)
		} else {
			t.Logf("%s: %v (%s)", test.dir, e, e.Hint)
		}
		if made.Len() > 0 && test.dir != "liar/fake" {
			t.Errorf("%s: events were made:\n%s", test.dir, &made)
		}
	}
}
