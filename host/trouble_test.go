//go:build linux

package host_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi"
)

// Each of these plugins cannot do its work. That is one line, which names it, the
// cause and a way out; runs of other plugins do not notice.
func TestPluginsThatDoNotStart(t *testing.T) {
	t.Parallel()
	troubles := []struct {
		name    string
		trouble agents.Trouble
		spoil   func(t *testing.T, dir, executable string)
		code    pluginapi.Code
		says    string
	}{
		{name: "panics-first", trouble: agents.PanicAtStart, code: pluginapi.CodePluginCrashed, says: "panicked before its handshake: panic: no start today"},
		{name: "hangs-first", trouble: agents.HangAtStart, code: pluginapi.CodePluginCrashed, says: "did not finish its handshake within " + patience.String()},
		{name: "prints-first", trouble: agents.PrintAtStart, code: pluginapi.CodePluginInvalid, says: `printed "hello, I am a plugin" to stdout before its handshake`},
		{name: "closes-first", trouble: agents.CloseAtStart, code: pluginapi.CodePluginInvalid, says: "closed its stdout before its handshake"},
		{name: "exits-first", trouble: agents.ExitAtStart, code: pluginapi.CodePluginInvalid, says: "exited with status 3 before its handshake: cannot find my settings"},
		{name: "other-major", trouble: agents.OtherMajor, code: pluginapi.CodePluginIncompatible, says: "speaks protocol 99; this amux speaks 1"},
		{name: "other-name", trouble: agents.OtherName, code: pluginapi.CodePluginInvalid, says: `says that its name is "somebody-else"`},
		{name: "other-version", trouble: agents.OtherVersion, code: pluginapi.CodePluginInvalid, says: `says that it has version "9.9.9", and describe.json "1.0.0"`},
		{name: "other-agent", trouble: agents.OtherAgent, code: pluginapi.CodePluginInvalid, says: `says that it has agents ["other-agent" "somebody-else"], and describe.json ["other-agent"]`},
		{name: "panics-describe", trouble: agents.PanicAtDescribe, code: pluginapi.CodePluginCrashed, says: "describe: panic: no description today"},
		{name: "hangs-describe", trouble: agents.HangAtDescribe, code: pluginapi.CodePluginCrashed, says: "gave no answer within " + patience.String() + " (describe)"},
		{name: "panics-plan", trouble: agents.PanicAtPlan, code: pluginapi.CodePluginCrashed, says: "panic: no plan today"},
		{name: "hangs-plan", trouble: agents.HangAtPlan, code: pluginapi.CodePluginCrashed, says: "gave no answer within " + patience.String() + " (plan)"},
		{name: "exits-plan", trouble: agents.ExitAtPlan, code: pluginapi.CodePluginCrashed, says: "died (plan)"},
		{name: "shell-plan", trouble: agents.ShellAtPlan, code: pluginapi.CodePluginInvalid, says: "its line is not the user's own"},
		{name: "bridge-plan", trouble: agents.BridgeAtPlan, code: pluginapi.CodeSpawn, says: "/amux-bridge, which is missing or not executable"},
		{name: "leaves-child", trouble: agents.OrphanAtStart, code: pluginapi.CodePluginInvalid, says: "exited with status 9 before its handshake"},
		{name: "no-program", trouble: agents.Healthy, code: pluginapi.CodePluginInvalid, says: "no such file",
			spoil: func(t *testing.T, _, executable string) { must(t, os.Remove(executable)) }},
		{name: "not-executable", trouble: agents.Healthy, code: pluginapi.CodePluginInvalid, says: "is not executable",
			spoil: func(t *testing.T, _, executable string) { must(t, os.Chmod(executable, 0o600)) }},
		{name: "text-file", trouble: agents.Healthy, code: pluginapi.CodePluginInvalid, says: "nor a script with a #! line",
			spoil: func(t *testing.T, _, executable string) {
				must(t, os.WriteFile(executable, []byte("I am a text.\n"), 0o700))
			}},
		{name: "just-true", trouble: agents.Healthy, code: pluginapi.CodePluginInvalid, says: "exited with status 0 before its handshake",
			spoil: func(t *testing.T, _, executable string) { copyFile(t, "/bin/true", executable) }},
		{name: "just-echo", trouble: agents.Healthy, code: pluginapi.CodePluginInvalid, says: "before its handshake",
			spoil: func(t *testing.T, _, executable string) { copyFile(t, "/bin/echo", executable) }},
		{name: "tampered", trouble: agents.Healthy, code: pluginapi.CodePluginUntrusted, says: "is not the file that was installed",
			spoil: func(t *testing.T, _, executable string) {
				tamper(t, executable)
			}},
		{name: "newer-manifest", trouble: agents.Healthy, code: pluginapi.CodePluginIncompatible, says: "speaks protocol 99; this amux speaks 1",
			spoil: func(t *testing.T, dir, _ string) {
				replaceIn(t, filepath.Join(dir, "amux-plugin.toml"), "major = [1]", "major = [99]")
			}},
		{name: "no-manifest", trouble: agents.Healthy, code: pluginapi.CodePluginInvalid, says: "no readable amux-plugin.toml",
			spoil: func(t *testing.T, dir, _ string) { must(t, os.Remove(filepath.Join(dir, "amux-plugin.toml"))) }},
		{name: "no-description", trouble: agents.Healthy, code: pluginapi.CodePluginInvalid, says: "describe.json",
			spoil: func(t *testing.T, dir, _ string) {
				must(t, os.WriteFile(filepath.Join(dir, "describe.json"), []byte("{"), 0o600))
			}},
	}
	s := agents.NewStage(t, "fine", "healthy")
	o := s.Options()
	o.BundledHashes = map[string]string{}
	for _, trouble := range troubles {
		must(t, agents.Install(s.Plugins, trouble.name, trouble.trouble))
		dir := filepath.Join(s.Plugins, trouble.name)
		executable := filepath.Join(dir, agents.Executable(trouble.name))
		if trouble.spoil == nil {
			continue
		}
		if trouble.code == pluginapi.CodePluginUntrusted {
			o.BundledHashes[trouble.name] = hashOf(t, executable)
		}
		trouble.spoil(t, dir, executable)
	}
	h := hurried(t, o)
	five := stand(t, s, h, "fine", 5)
	var wg sync.WaitGroup
	for _, trouble := range troubles {
		wg.Go(func() {
			_, err := h.Start(context.Background(), host.RunSpec{Agent: trouble.name, Prompt: "say hi"})
			wantError(t, trouble.name, err, trouble.code, trouble.says)
		})
	}
	wg.Wait()
	five.finish(h)
	if active, _ := os.ReadDir(filepath.Join(s.Config, "runs", "active")); len(active) != 0 {
		t.Errorf("%d runs were left behind by starts that failed", len(active))
	}
	if left, _ := os.ReadDir(s.Temp); len(left) != 0 {
		t.Errorf("temp folders were left behind: %v", left)
	}
}

// wantError wants one line that names the plugin, the cause and a way out.
func wantError(t *testing.T, plugin string, err error, code pluginapi.Code, says string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", plugin)
		return
	}
	e := pluginapi.AsError(err)
	if e.Code != code || !strings.Contains(e.Error(), says) {
		t.Errorf("%s: %s %q, want %s … %q", plugin, e.Code, e.Error(), code, says)
	}
	if !strings.Contains(e.Error(), plugin) {
		t.Errorf("%s is not named: %q", plugin, e.Error())
	}
	if e.Hint == "" && e.Code.Info().Hint == "" {
		t.Errorf("%s: no way out of %q", plugin, e.Error())
	}
	if strings.ContainsAny(e.Error()+e.Hint, "\n\r") || len(e.Error()) > 500 {
		t.Errorf("%s: more than a line: %q %q", plugin, e.Error(), e.Hint)
	}
}

// A plugin that was good is tampered with between two runs, with size and time of
// change restored.
func TestPluginTamperedWithLater(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "good", "healthy")
	executable := filepath.Join(s.Plugins, "good", agents.Executable("good"))
	o := s.Options()
	o.BundledHashes = map[string]string{"good": hashOf(t, executable)}
	h := hurried(t, o)
	for range 2 { // the second by its receipt
		if end, _ := s.Start(h, host.RunSpec{Agent: "good", Prompt: "say hi"}).Wait(context.Background()); end.Err != nil {
			t.Fatal(end.Err)
		}
	}
	five := stand(t, s, h, "good", 5)
	tamper(t, executable)
	_, err := h.Start(context.Background(), host.RunSpec{Agent: "good", Prompt: "say hi"})
	wantError(t, "good", err, pluginapi.CodePluginUntrusted, "is not the file that was installed")
	five.finish(h) // what runs, runs on with what was verified
}

// tamper changes a file and restores its size and time.
func tamper(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	replaceIn(t, path, "exec '", "exec  ")
	must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
	now, err := os.Stat(path)
	must(t, err)
	if now.Size() != info.Size() || !now.ModTime().Equal(info.ModTime()) {
		t.Fatal("that shows")
	}
}

func replaceIn(t *testing.T, path, old, new string) {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	if !strings.Contains(string(data), old) {
		t.Fatalf("%s has no %q", path, old)
	}
	info, err := os.Stat(path)
	must(t, err)
	must(t, os.WriteFile(path, []byte(strings.Replace(string(data), old, new, 1)), info.Mode()))
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to, data, 0o700))
}

func hashOf(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return fmt.Sprintf("%x", sha256.Sum256(data))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A run is told again by the build that it began with, whatever the plugin is by now.
func TestReplayAfterAnUpgrade(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "grown", "healthy")
	h := hurried(t, s.Options())
	r := s.Start(h, host.RunSpec{Agent: "grown", Prompt: "lines 20"})
	before := events(t, r)
	for _, file := range []string{"amux-plugin.toml", "describe.json"} {
		replaceIn(t, filepath.Join(s.Plugins, "grown", file), `"1.0.0"`, `"2.0.0"`)
	}
	later := hurried(t, s.Options())
	if d := agents.Difference(string(replay(t, later, r.ID())), string(before)); d != "" {
		t.Error(d)
	}
	_, err := later.Start(context.Background(), host.RunSpec{Agent: "grown", Prompt: "say hi"})
	wantError(t, "grown", err, pluginapi.CodePluginInvalid, `says that it has version "1.0.0", and describe.json "2.0.0"`)
}

// A plugin is asked what it is until it has said so once, and again when its files have changed. One that says
// something else is asked each time.
func TestPluginsAreAskedOnce(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "plain", "healthy", "liar", string(agents.OtherVersion))
	start := func(agent string) (asked []bool, err error) {
		h := hurried(t, s.Options())
		h.CountDescribed(func(is bool) { asked = append(asked, is) })
		r, err := h.Start(t.Context(), host.RunSpec{Agent: agent, Prompt: "say hi"})
		if err == nil {
			_, err = r.Wait(t.Context())
		}
		return asked, err
	}
	asks := func(after string) bool {
		t.Helper()
		asked, err := start("plain")
		if err != nil || len(asked) != 1 {
			t.Fatalf("%s: asked is %v, %v", after, asked, err)
		}
		return asked[0]
	}
	// Files that are new may change unnoticed, for a moment.
	untilKnown := func() {
		t.Helper()
		for tries := 1; asks("again"); tries++ {
			if tries == 50 {
				t.Fatal("it is asked each time")
			}
		}
	}
	if !asks("first start") {
		t.Error("first start: it is not asked")
	}
	untilKnown()
	replaceIn(t, filepath.Join(s.Plugins, "plain", "describe.json"), "{", "{ ")
	if !asks("describe.json was written again") {
		t.Error("describe.json was written again: it is not asked")
	}
	untilKnown()
	for range 3 {
		asked, err := start("liar")
		wantError(t, "liar", err, pluginapi.CodePluginInvalid, `says that it has version "9.9.9"`)
		if len(asked) != 1 || !asked[0] {
			t.Errorf("a liar: asked is %v", asked)
		}
	}
}
