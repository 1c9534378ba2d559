//go:build unix

package enclosure

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

// tree makes files, folders (with a slash at the end) and links ("a -> b") in a folder.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		link, to, isLink := strings.Cut(name, " -> ")
		file, text, _ := strings.Cut(name, "=")
		path := filepath.Join(root, link)
		if !isLink {
			path = filepath.Join(root, file)
		}
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		switch {
		case isLink:
			err = errors.Join(err, os.Symlink(strings.ReplaceAll(to, "ROOT", root), path))
		case strings.HasSuffix(file, "/"):
			err = errors.Join(err, os.MkdirAll(path, 0o700))
		default:
			err = errors.Join(err, os.WriteFile(path, []byte(strings.ReplaceAll(text, "ROOT", root)), 0o700))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// What is shown of a home: the work folder, what the agent needs, its program with what
// belongs to it; and never what hostile files of the work folder name.
func TestMounts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		files  []string
		change func(root string, s *Setting, p *Policy)
		want   []string // of the mounts below ROOT, "ro path", "rw path", "no path"; with "from" a source
	}{
		{"a work folder alone", []string{"home/w/"}, nil, []string{"rw home/w"}},
		{"a repository", []string{"home/w/.git/HEAD"}, nil, []string{"rw home/w", "ro home/w/.git"}},
		{"a folder of a repository", []string{"home/w/.git/HEAD", "home/w/sub/"}, func(root string, s *Setting, _ *Policy) {
			s.Cwd = root + "/home/w/sub"
		}, []string{"ro home/w", "rw home/w/sub"}},
		{"a home that is a repository", []string{"home/.git/HEAD", "home/w/"}, nil, []string{"rw home/w"}},
		{"a .git that is a link to keys", []string{"home/w/", "home/.ssh/id", "home/w/.git -> ROOT/home/.ssh"}, nil, []string{"rw home/w"}},
		{"a .git that names keys", []string{"home/w/.git=gitdir: ROOT/home/.ssh\n", "home/.ssh/id"}, nil, []string{"rw home/w", "ro home/w/.git"}},
		{"a linked work tree", []string{"home/w/.git=gitdir: ROOT/home/main/.git/worktrees/w\n", "home/main/.git/worktrees/w/gitdir=ROOT/home/w/.git\n"}, nil,
			[]string{"rw home/w", "ro home/w/.git", "ro home/main/.git"}},
		{"a .git that names the work tree of another folder", []string{"home/w/.git=gitdir: ROOT/home/main/.git/worktrees/o\n", "home/main/.git/worktrees/o/gitdir=ROOT/home/other/.git\n"}, nil,
			[]string{"rw home/w", "ro home/w/.git"}},
		{"a work folder by a link", []string{"home/real/", "home/w -> real"}, nil, []string{"rw home/real", "rw home/w from home/real"}},
		{"what the agent needs", []string{"home/w/", "home/.agent/", "home/.agent.json", "home/.ssh/id"}, func(root string, s *Setting, _ *Policy) {
			s.Needs = []string{root + "/home/.agent/", root + "/home/.agent.json", root + "/home/.new/", root + "/home/.none.json"}
		}, []string{"rw home/.agent", "rw home/.agent.json", "rw home/.new", "rw home/w"}},
		{"dotfiles by links", []string{"home/w/", "home/dots/agent/", "home/.agent -> dots/agent"}, func(root string, s *Setting, _ *Policy) {
			s.Needs = []string{root + "/home/.agent/"}
		}, []string{"rw home/.agent from home/dots/agent", "rw home/dots/agent", "rw home/w"}},
		{"a program of Node.js", []string{"home/w/", "home/n/lib/node_modules/a/cli.js=#!/usr/bin/env node\n", "home/n/bin/a -> ../lib/node_modules/a/cli.js", "home/n/bin/node"}, func(root string, s *Setting, _ *Policy) {
			s.Programs, s.Path = []string{root + "/home/n/bin/a"}, root+"/home/n/bin:/usr/bin"
		}, []string{"ro home/n/bin", "ro home/n/lib/node_modules", "rw home/w"}},
		{"a program of Python", []string{"home/w/", "home/v/bin/a=#!ROOT/home/v/bin/python\n", "home/v/pyvenv.cfg", "home/v/bin/python -> ROOT/home/py/bin/python", "home/py/bin/python"}, func(root string, s *Setting, _ *Policy) {
			s.Programs = []string{root + "/home/v/bin/a"}
		}, []string{"ro home/py", "ro home/v", "rw home/w"}},
		{"a program in the home itself", []string{"home/w/", "home/bin/python", "home/v/bin/a=#!ROOT/home/bin/python\n"}, func(root string, s *Setting, _ *Policy) {
			s.Programs, s.Path = []string{root + "/home/v/bin/a"}, root+"/home:/usr/bin"
		}, []string{"ro home/bin/python", "ro home/v/bin/a", "rw home/w"}},
		{"what the user allows", []string{"home/w/.git/HEAD", "home/r", "home/x/"}, func(root string, _ *Setting, p *Policy) {
			p.Read, p.Write = []string{root + "/home/r"}, []string{root + "/home/x", root + "/home/w/.git"}
		}, []string{"ro home/r", "rw home/w", "rw home/x"}},
		{"amux's folders in the work folder", []string{"home/w/conf/"}, func(root string, s *Setting, _ *Policy) {
			s.Hidden = []string{root + "/home/w/conf"}
		}, []string{"no home/w/conf", "rw home/w"}},
		{"amux's folders in the home", []string{"home/w/", "home/.amux/plugins/p"}, func(root string, s *Setting, _ *Policy) {
			s.Hidden, s.Shown = []string{root + "/home/.amux"}, []string{root + "/home/.amux/plugins/p"}
		}, []string{"ro home/.amux/plugins/p", "rw home/w"}},
	} {
		root := tree(t, test.files...)
		s := Setting{Home: root + "/home", Cwd: root + "/home/w", TempDir: root + "/none"}
		var p Policy
		if test.change != nil {
			test.change(root, &s, &p)
		}
		mounts, err := p.mounts(s)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		args := binds(mounts)
		var got []string
		for i, arg := range args {
			if path, ok := strings.CutPrefix(args[min(i+1, len(args)-1)], root+"/home/"); ok && arg == "--tmpfs" {
				got = append(got, "no home/"+path)
			}
			kind := map[string]string{"--ro-bind": "ro ", "--bind": "rw "}[arg]
			if kind == "" || i+2 >= len(args) {
				continue
			}
			source, okSource := strings.CutPrefix(args[i+1], root+"/")
			path, ok := strings.CutPrefix(args[i+2], root+"/")
			if !ok || !okSource {
				continue
			}
			text := kind + path
			if source != path {
				text += " from " + source
			}
			got = append(got, text)
		}
		slices.Sort(got)
		slices.Sort(test.want)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: it shows %q, want %q", test.name, got, test.want)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	root := tree(t, "home/w/", "home/link -> ROOT/home", "up -> ROOT/home")
	home := root + "/home"
	for cwd, good := range map[string]bool{home + "/w": true, home: false, root: false, "/": false, home + "/link": false, root + "/up": false, home + "/none": false, "": true} {
		if err := (Policy{}).Check(home, cwd); (err == nil) != good {
			t.Errorf("in %s: %v", cwd, err)
		}
	}
	for _, p := range []Policy{{Network: []string{"all", "a.b"}}, {Network: []string{"a b"}}, {Network: []string{"localhost:80"}}, {Read: []string{"relative"}}, {Read: []string{root + "/none"}}, {Write: []string{root}}} {
		if err := p.Check(home, home+"/w"); !errors.Is(err, pluginapi.CodeValidation) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}
