package deps

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// NOTICE names every module that is linked into a program, as it is now.
func TestNotice(t *testing.T) {
	notice, err := os.ReadFile("../../NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	lines := "\n" + string(notice)
	modules := map[string]bool{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		cmd := exec.Command("go", "list", "-deps", "-json=Module", "./cmd/amux", "./cmd/amux/amux-api", "./cmd/amux-shim", "./cmd/amux-bridge", "./cmd/amux-schema", "./plugins/...")
		cmd.Dir, cmd.Env = "../..", append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
			var p struct {
				Module *struct {
					Path, Version string
					Main          bool
				}
			}
			if err := decoder.Decode(&p); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if p.Module != nil && !p.Module.Main {
				modules[p.Module.Path+" "+p.Module.Version] = true
			}
		}
	}
	if len(modules) < 20 {
		t.Fatalf("only %d modules are linked", len(modules))
	}
	for name := range modules {
		if strings.Count(lines, "\n"+name+", ") != 1 || strings.Count(lines, "\n"+name+"\n") == 0 {
			t.Errorf("NOTICE lacks %s or its licence: make licenses", name)
		}
	}
	// What the Mozilla licence asks for besides its text.
	if n := strings.Count(lines, ", MPL-2.0\n    its source, "); n < 2 || n != strings.Count(lines, ", MPL-2.0\n") {
		t.Errorf("NOTICE says of %d modules under MPL-2.0 where their source is", n)
	}
	for _, says := range []string{
		"without two lines that tools/modules.sh of amux's source takes out: https://github.com/hashicorp/go-plugin, version v",
		"with regular expressions that tools/modules.sh of amux's source has compiled when they are used: https://github.com/Masterminds/semver/v3, version v",
	} {
		if !strings.Contains(lines, "\n    its source, "+says) {
			t.Errorf("NOTICE does not say of a module that it is changed: %s", says)
		}
	}
}
