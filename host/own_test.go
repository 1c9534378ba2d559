//go:build unix

package host_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi"
)

// own is what the agent of the tests keeps in a home and a project.
func own(t *testing.T) (o *host.Own, home, project string) {
	t.Helper()
	s := agents.NewStage(t, "fake", "healthy")
	options := s.Options()
	home, project = t.TempDir(), t.TempDir()
	options.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "HOME=") }), "HOME="+home)
	options.ProjectDir = project
	h, err := host.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close(t.Context()) })
	return h.Own("fake"), home, project
}

func put(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
}

// Servers come and go in the file of their scope; its comments and mode stay, and no value
// of a variable is ever listed.
func TestOwnMCPServers(t *testing.T) {
	t.Parallel()
	o, home, project := own(t)
	second := filepath.Join(home, ".fake", "second.json") // the first is not there
	const before = "{\n  // mine\n  \"mcpServers\": {},\n}\n"
	put(t, second, before, 0o640)
	server := host.MCPServer{Name: "files", Transport: "stdio", Command: "srv", Args: []string{"-x"}, Env: map[string]string{"KEY": "top-secret"}}
	if path, err := o.AddMCPServer(t.Context(), "user", server); err != nil || path != second {
		t.Fatalf("added to %s: %v", path, err)
	}
	text, err := os.ReadFile(second)
	info, statErr := os.Stat(second)
	if err := errors.Join(err, statErr); err != nil || !strings.Contains(string(text), "// mine") || !strings.Contains(string(text), "top-secret") || info.Mode() != 0o640 {
		t.Errorf("%v: mode %v, %s", err, info.Mode(), text)
	}
	if _, err := o.AddMCPServer(t.Context(), "user", server); !errors.Is(err, pluginapi.CodeValidation) {
		t.Errorf("added twice: %v", err)
	}
	inProject := filepath.Join(project, ".fake", "mcp.json")
	if path, err := o.AddMCPServer(t.Context(), "project", host.MCPServer{
		Name: "files", Transport: "http", URL: "http://u:top-secret@h/mcp?key=top-secret", Headers: map[string]string{"Authorization": "top-secret"},
	}); err != nil || path != inProject {
		t.Fatalf("added to %s: %v", path, err)
	}
	if info, err := os.Stat(inProject); err != nil || info.Mode() != 0o600 {
		t.Errorf("the new file: %v, %v", info, err)
	}
	list, err := o.MCPServers(t.Context())
	if err != nil || len(list) != 2 || strings.Contains(fmt.Sprintf("%+v", list), "top-secret") || !slices.Equal(list[0].Env, []string{"KEY"}) || !slices.Equal(list[1].Headers, []string{"Authorization"}) || list[1].Scope != "project" {
		t.Errorf("listed %+v, %v", list, err)
	}
	if _, err := o.RemoveMCPServer(t.Context(), "", "files"); !errors.Is(err, pluginapi.CodeValidation) || !strings.Contains(err.Error(), "several scopes") {
		t.Errorf("removed from somewhere: %v", err)
	}
	for _, scope := range []string{"user", "project"} {
		if _, err := o.RemoveMCPServer(t.Context(), scope, "files"); err != nil {
			t.Error(err)
		}
	}
	if text, err := os.ReadFile(second); err != nil || string(text) != strings.Replace(before, "{},", "{\n  },", 1) {
		t.Errorf("left: %q, %v", text, err)
	}
	for what, err := range map[string]error{
		"remove":       func() error { _, err := o.RemoveMCPServer(t.Context(), "", "files"); return err }(),
		"a bad server": func() error { _, err := o.AddMCPServer(t.Context(), "user", host.MCPServer{Name: "x"}); return err }(),
	} {
		if !errors.Is(err, pluginapi.CodeValidation) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := o.AddMCPServer(t.Context(), "galaxy", server); !errors.Is(err, pluginapi.CodeCapability) {
		t.Errorf("an unknown scope: %v", err)
	}
}

// Files that are not the user's alone, or no files, are neither read for long nor replaced.
func TestOwnRefusesStrangeFiles(t *testing.T) {
	t.Parallel()
	server := host.MCPServer{Name: "x", Transport: "stdio", Command: "srv"}
	for name, c := range map[string]struct {
		scope, want string
		make        func(t *testing.T, home, project string)
	}{
		"a link": {"user", "it is a link", func(t *testing.T, home, project string) {
			put(t, filepath.Join(project, "target"), "{}", 0o600)
			if err := errors.Join(os.Mkdir(filepath.Join(home, ".fake"), 0o700), os.Symlink(filepath.Join(project, "target"), filepath.Join(home, ".fake", "first.json"))); err != nil {
				t.Fatal(err)
			}
		}},
		"others may write it": {"user", "other users may write it", func(t *testing.T, home, _ string) { put(t, filepath.Join(home, ".fake", "first.json"), "{}", 0o666) }},
		"a FIFO": {"user", "it is a FIFO", func(t *testing.T, home, _ string) {
			if err := errors.Join(os.Mkdir(filepath.Join(home, ".fake"), 0o700), syscall.Mkfifo(filepath.Join(home, ".fake", "first.json"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}},
		"no JSON": {"user", "is not understood", func(t *testing.T, home, _ string) { put(t, filepath.Join(home, ".fake", "first.json"), "top", 0o600) }},
		"too large": {"user", "it is larger than 16 MiB", func(t *testing.T, home, _ string) {
			put(t, filepath.Join(home, ".fake", "first.json"), "", 0o600)
			if err := os.Truncate(filepath.Join(home, ".fake", "first.json"), 17<<20); err != nil {
				t.Fatal(err)
			}
		}},
		"a linked folder of the project": {"project", "it is a link", func(t *testing.T, home, project string) {
			if err := os.Symlink(home, filepath.Join(project, ".fake")); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, home, project := own(t)
			c.make(t, home, project)
			_, err := o.AddMCPServer(t.Context(), c.scope, server)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if e := pluginapi.AsError(err); e == nil || e.Hint == "" {
				t.Errorf("no way out: %v", err)
			}
			left, _ := filepath.Glob(filepath.Join(home, ".fake", ".*-*"))
			if text, err := os.ReadFile(filepath.Join(project, "target")); err == nil && string(text) != "{}" || len(left) > 0 {
				t.Errorf("written: %q, %v", text, left)
			}
		})
	}
}

// Several at once lose nothing.
func TestOwnConcurrently(t *testing.T) {
	t.Parallel()
	o, _, _ := own(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if _, err := o.AddMCPServer(t.Context(), "user", host.MCPServer{Name: fmt.Sprint("s", i), Transport: "stdio", Command: "srv"}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if list, err := o.MCPServers(t.Context()); err != nil || len(list) != 8 {
		t.Errorf("%d servers, %v", len(list), err)
	}
}

// A skill is copied whole, found, and removed; what is no skill is refused.
func TestOwnSkills(t *testing.T) {
	t.Parallel()
	o, home, project := own(t)
	from := filepath.Join(t.TempDir(), "hello")
	put(t, filepath.Join(from, "SKILL.md"), "---\nname: hello\ndescription: \"Says hello\"\n---\n", 0o644)
	put(t, filepath.Join(from, "bin", "run"), "#!/bin/sh\n", 0o755)
	for _, scope := range []string{"user", "project"} {
		if s, err := o.AddSkill(t.Context(), scope, from); err != nil || s.Name != "hello" {
			t.Fatalf("%s: %+v, %v", scope, s, err)
		}
	}
	if info, err := os.Stat(filepath.Join(home, ".fake", "skills", "hello", "bin", "run")); err != nil || info.Mode() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	list, err := o.Skills()
	if err != nil || len(list) != 2 || list[0].Description != "Says hello" || list[1].Path != filepath.Join(project, ".fake", "skills", "hello") {
		t.Errorf("listed %+v, %v", list, err)
	}
	if _, err := o.AddSkill(t.Context(), "user", from); !errors.Is(err, pluginapi.CodeValidation) {
		t.Errorf("installed twice: %v", err)
	}
	if _, err := o.RemoveSkill(t.Context(), "", "hello"); !errors.Is(err, pluginapi.CodeValidation) {
		t.Errorf("removed from somewhere: %v", err)
	}
	if path, err := o.RemoveSkill(t.Context(), "user", "hello"); err != nil || path != list[0].Path {
		t.Errorf("removed %s: %v", path, err)
	}
	if entries, err := os.ReadDir(filepath.Join(home, ".fake", "skills")); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	linked := filepath.Join(t.TempDir(), "linked")
	put(t, filepath.Join(linked, "SKILL.md"), "", 0o644)
	if err := os.Symlink("/etc/passwd", filepath.Join(linked, "passwd")); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(t.TempDir(), "plain")
	put(t, filepath.Join(plain, "README.md"), "", 0o644)
	many := filepath.Join(t.TempDir(), "many")
	put(t, filepath.Join(many, "SKILL.md"), "", 0o644)
	put(t, filepath.Join(many, "big"), "", 0o644)
	if err := os.Truncate(filepath.Join(many, "big"), 33<<20); err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]string{"a link": linked, "no SKILL.md": plain, "too large": many, "nothing": filepath.Join(plain, "none"), "a strange name": filepath.Join(plain, "a\nb")} {
		if _, err := o.AddSkill(t.Context(), "user", from); err == nil {
			t.Errorf("%s: installed", name)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(home, ".fake", "skills")); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	// Of a link only the link is removed; names lead nowhere else.
	link := filepath.Join(home, ".fake", "skills", "mine")
	if err := os.Symlink(from, link); err != nil {
		t.Fatal(err)
	}
	if _, err := o.RemoveSkill(t.Context(), "", "mine"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(from, "SKILL.md")); err != nil {
		t.Error(err)
	}
	if _, err := o.RemoveSkill(t.Context(), "", "../skills/hello"); !errors.Is(err, pluginapi.CodeValidation) {
		t.Errorf("another folder: %v", err)
	}
}

// The agent's own command adds a plugin; where it fails its last line is told.
func TestOwnPluginChanges(t *testing.T) {
	t.Parallel()
	o, _, project := own(t)
	if err := o.AddPlugin(t.Context(), "echo hello > added"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(project, "added")); err != nil {
		t.Error(err)
	}
	if err := o.RemovePlugin(t.Context(), "echo no such plugin; exit 3"); !errors.Is(err, pluginapi.CodeAgentFailed) || !strings.Contains(err.Error(), "failed with code 3: no such plugin") {
		t.Errorf("got %v", err)
	} else if hint := pluginapi.AsError(err).Hint; !strings.Contains(hint, "in a terminal") {
		t.Errorf("the way out: %q", hint)
	}
	for _, word := range []string{"", "--force"} {
		if err := o.AddPlugin(t.Context(), word); !errors.Is(err, pluginapi.CodeValidation) {
			t.Errorf("%q: %v", word, err)
		}
	}
}
