//go:build unix

package agents

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

// Install makes the folder dir/name of a plugin with one agent of the same name.
// Its executable is a line of shell that starts the test's executable.
func Install(dir, name string, trouble Trouble) error {
	to := filepath.Join(dir, name)
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	manifest := fmt.Sprintf("manifest = 1\nname = %q\nversion = %q\n\n[protocol]\nmajor = [1]\n\n[[agent]]\nid = %q\n", name, trouble.version(), name)
	text, err := sdk.DescribeJSON(&pluginapi.Description{
		Plugin: name, Version: trouble.version(), Agents: []*pluginapi.Agent{describe(name)},
	})
	if err != nil {
		return err
	}
	launcher := fmt.Sprintf("#!/bin/sh\nexec '%s' %s plugin %s %s \"$@\"\n", self(), castArg, name, trouble)
	for _, file := range []struct {
		name, content string
		mode          os.FileMode
	}{
		{"amux-plugin.toml", manifest, 0o600},
		{"describe.json", string(text), 0o600},
		{Executable(name), launcher, 0o700},
	} {
		path := filepath.Join(to, file.name)
		if err := os.WriteFile(path, []byte(file.content), file.mode); err != nil {
			return err
		}
	}
	return nil
}

// Executable is the name of a plugin's executable.
func Executable(name string) string { return "amux-plugin-" + name }
