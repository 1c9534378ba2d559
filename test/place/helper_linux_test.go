package place

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amux-dev/amux/internal/test/home"
)

// The helper program of the documentation does all that a place must, and runs are there.
func TestHelperProgram(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	program, err := filepath.Abs("../../docs/example-place/amux-place-home")
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{home.New(t), nil}
	root := filepath.Join(v.User, "homes")
	said := v.Sh(nil, v.Amux, "place", "test", program, "--option", "root="+root)
	if strings.Contains(said, "FAIL") || strings.Count(said, "ok ") < 12 {
		t.Errorf("the checks: %s", said)
	}
	v.config("[agents.script]\nadapter = \"command\"\ncommand = ['/bin/sh', '-c', 'read x; echo $x in $HOME, $(ls -A $HOME)']")
	v.config("[places.scratch]\nprogram = \"" + program + "\"\nfolder = \"~/work\"\n[places.scratch.options]\nroot = \"" + root + "\"")
	said = v.Sh(nil, v.Amux, "run", "--on", "scratch", "script", "hello")
	id := v.Sh(nil, v.Amux, "ps", "-a", "-q")
	if !strings.HasPrefix(said, "hello in "+root+"/"+id) {
		t.Errorf("the agent said %q", said)
	}
	v.Until("its home is gone", func() bool { return v.Sh(nil, "ls", root) == "" })
	if said, err := v.Try(nil, v.Amux, "place", "test", "/bin/cat"); err == nil || !strings.Contains(said, "FAIL  provision") {
		t.Errorf("a program that is no helper: %v: %s", err, said)
	}
}

// A place where nothing is without a run gets something for a look, and keeps nothing of it.
func TestNothingWithoutRun(t *testing.T) {
	t.Parallel()
	v := &visitor{home.New(t), nil}
	root := t.TempDir()
	program := filepath.Join(t.TempDir(), "helper")
	script := `#!/bin/sh
case $1 in
provision) mkdir "` + root + `/$2" ;;
destroy) rm -rf "` + root + `/$2" ;;
list) ls "` + root + `" ;;
exec) if [ "$2" = - ]; then echo "nothing is there without a run" >&2; exit 97; fi
	HOME="` + root + `/$2"; export HOME; shift 3; exec "$@" ;;
*) exit 1 ;;
esac
`
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	v.config("[places.scratch]\nprogram = \"" + program + "\"")
	if said := v.Sh(nil, v.Amux, "place", "check", "scratch"); !strings.Contains(said, "home    "+root) {
		t.Errorf("check: %s", said)
	}
	v.Sh(nil, "mkdir", filepath.Join(root, "01ARYZ6S41TSV4RRFFQ69G5FAV")) // of a run that is not known here
	if said := v.Sh(nil, v.Amux, "place", "clean", "scratch"); said != "01ARYZ6S41TSV4RRFFQ69G5FAV" {
		t.Errorf("clean: %s", said)
	}
	if said := v.Sh(nil, "ls", root); said != "" {
		t.Errorf("left: %s", said)
	}
}
