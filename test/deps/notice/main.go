// Notice writes the licences of all that is linked into amux's programs, on the three
// systems, as the file NOTICE. It reads the module cache only. Run it by make licenses
// whenever a module is added or upgraded; TestNotice says so.
//
//	notice FILE
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: notice FILE")
		os.Exit(2)
	}
	text, err := notice()
	if err == nil {
		err = os.WriteFile(os.Args[1], text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "notice:", err)
		os.Exit(1)
	}
}

type module struct {
	Path, Version, Dir string
	Main               bool
	Replace            *module
}

// linked are the modules that some program of amux links on some system.
func linked() (map[string]module, error) {
	found := map[string]module{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		cmd := exec.Command("go", "list", "-deps", "-json=Module", "./cmd/...", "./plugins/...")
		cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return nil, fmt.Errorf("go list for %s: %s", system, exit.Stderr)
		}
		if err != nil {
			return nil, err
		}
		for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
			var p struct{ Module *module }
			if err := decoder.Decode(&p); err == io.EOF {
				break
			} else if err != nil {
				return nil, err
			}
			if p.Module != nil && !p.Module.Main {
				found[p.Module.Path] = *p.Module
			}
		}
	}
	return found, nil
}

// licenceFile are the names under which modules keep what must be passed on.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|copyright)([-.].*)?$`)

// texts are the contents of those files of a folder.
func texts(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		if !e.Type().IsRegular() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		found = append(found, strings.TrimSpace(strings.ReplaceAll(string(data), "\r\n", "\n")))
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s holds no licence", dir)
	}
	return found, nil
}

// kind names the common licences.
func kind(all []string) string {
	text := strings.Join(strings.Fields(strings.Join(all, "\n")), " ")
	for _, k := range []struct{ name, says string }{
		{"MPL-2.0", "Mozilla Public License"},
		{"Apache-2.0", "Apache License"},
		{"ISC", "Permission to use, copy, modify, and/or distribute this software"},
		{"ISC", "Permission to use, copy, modify, and distribute this software for any purpose"},
		{"MIT", "Permission is hereby granted, free of charge"},
		{"BSD-3-Clause", "Neither the name"},
		{"BSD-3-Clause", "names of its contributors"},
		{"BSD-2-Clause", "Redistributions of source code must retain"},
	} {
		if strings.Contains(text, k.says) {
			return k.name
		}
	}
	return "see below"
}

// changed says how a module is changed when it is linked, and by what.
var changed = map[string]string{
	"github.com/hashicorp/go-plugin":   "without two lines that tools/modules.sh of amux's source takes out",
	"github.com/Masterminds/semver/v3": "with regular expressions that tools/modules.sh of amux's source has compiled when they are used",
}

func notice() ([]byte, error) {
	modules, err := linked()
	if err != nil {
		return nil, err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	modules["Go standard library"] = module{Path: "Go standard library", Dir: strings.TrimSpace(string(root))}
	// The page of amux-api has a terminal.
	modules["@xterm/xterm, @xterm/addon-fit"] = module{Path: "@xterm/xterm, @xterm/addon-fit", Version: "6.0.0, 0.11.0", Dir: "cmd/amux/amux-api/internal/page/site/xterm"}
	users := map[string][]string{} // modules by text
	var b bytes.Buffer
	b.WriteString("amux links these modules into its programs. Their licences follow.\n" +
		"Written by: make licenses\n\n")
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		m := modules[path]
		if m.Replace != nil {
			m.Dir, m.Version = m.Replace.Dir, m.Replace.Version
		}
		all, err := texts(m.Dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		name := strings.TrimSpace(path + " " + m.Version)
		fmt.Fprintf(&b, "%s, %s\n", name, kind(all))
		if changed[path] != "" || kind(all) == "MPL-2.0" {
			fmt.Fprintf(&b, "    its source, %s: https://%s, version %s\n", cmp.Or(changed[path], "unchanged"), path, m.Version)
		}
		for _, text := range all {
			users[text] = append(users[text], name)
		}
	}
	order := slices.SortedFunc(maps.Keys(users), func(a, b string) int { return strings.Compare(users[a][0]+a, users[b][0]+b) })
	for _, text := range order {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(users[text], "\n"), text)
	}
	return b.Bytes(), nil
}
