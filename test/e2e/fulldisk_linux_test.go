package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fullDisk fills the disk of the record while a run writes to it, and never frees it until
// everybody has left: $1 is amux, $2 its flag -d or nothing. Each command's stdout, stderr
// and exit code are files of the working folder.
const fullDisk = `
amux=$1 detached=$2
mount -t tmpfs -o mode=0700,size=64m none "$HOME/.agent-mux" || { echo no tmpfs >&2; exit 99; }
cat > "$HOME/.agent-mux/config.toml" <<'END'
[agents.flood]
adapter = "command"
command = "echo begin; while [ ! -e go ]; do sleep 0.1; done; i=0; while [ $i -lt 100000 ]; do echo line $i; i=$((i+1)); done"
END
"$amux" run demo '[say:warm]' >/dev/null 2>&1 # the plugin's copy
note() { name=$1; shift; "$amux" "$@" >$name.out 2>$name.err; echo $? >$name.code; }
if [ -n "$detached" ]; then note run run -d flood --name full hi; else note run run flood --name full --json hi & fi
for i in $(seq 300); do "$amux" logs full 2>/dev/null | grep -q begin && break; sleep 0.1; done
room=$(df -k --output=avail "$HOME/.agent-mux" | tail -1)
dd if=/dev/zero of="$HOME/.agent-mux/fill" bs=1024 count=$((room-400)) 2>/dev/null
note logs logs -f --json full &
note human logs -f full &
note wait wait full &
{ sleep 100 & echo $! >sleep.pid; wait; } | note attach attach full &
touch go
for i in $(seq 1200); do [ -e logs.code ] && [ -e wait.code ] && [ -e attach.code ] && [ -e human.code ] && [ -e run.code ] && break; sleep 0.1; done
kill $(cat sleep.pid)
note ps ps -a --json
note later logs --json full
rm "$HOME/.agent-mux/fill"
note freed logs --json full
note freedps ps -a --json
note freedwait wait full
`

// A disk that is full and stays so: whoever follows the run is told how it ended, by an
// exit code and by the last line, and ps never says that it is running. When there is
// space again the record gets the rest.
func TestFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: waits a minute for a disk that stays full")
	}
	t.Parallel()
	amux, err := filepath.Abs("../../bin/amux")
	if err != nil {
		t.Fatal(err)
	}
	for _, detached := range []string{"", "-d"} {
		t.Run("run "+detached, func(t *testing.T) {
			t.Parallel()
			work, home, runtime := t.TempDir(), t.TempDir(), runtimeDir(t)
			if err := os.Mkdir(home+"/.agent-mux", 0o700); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "sh", "-c", fullDisk, "sh", amux, detached)
			cmd.Dir, cmd.Env = work, []string{"HOME=" + home, "XDG_RUNTIME_DIR=" + runtime, "PATH=" + os.Getenv("PATH")}
			cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
			if uid := os.Getuid(); uid != 0 {
				cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
				cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
				cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
			}
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() == 99 {
				t.Skipf("SKIPPED: no file system can be mounted here: %v %s", err, out)
			}
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			read := func(name string) string {
				data, err := os.ReadFile(filepath.Join(work, name))
				if err != nil {
					t.Errorf("%s did not end: %v", name, err)
				}
				return strings.TrimSpace(string(data))
			}
			type event struct{ Type, Code, State, Reason string }
			last := func(name string) (e event) {
				text := read(name + ".out")
				line := text[strings.LastIndexByte(text, '\n')+1:]
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					t.Errorf("%s: last line %.200q: %v", name, line, err)
				}
				return e
			}
			followers := []string{"logs", "wait", "attach", "human"}
			if detached == "" {
				followers = append(followers, "run")
			}
			for _, name := range followers {
				if code := read(name + ".code"); code != "1" {
					t.Errorf("%s: exit code %s: %s", name, code, read(name+".err"))
				}
				if said := read(name + ".err"); !strings.Contains(said, "amux: error: ") || !strings.Contains(said, "hint: free some space") {
					t.Errorf("%s: %s", name, said)
				}
			}
			for _, name := range []string{"run", "logs", "later"} {
				if name == "run" && detached != "" {
					continue
				}
				if e := last(name); e.Type != "error" || e.Code != "DISK_FULL" {
					t.Errorf("%s: the last line is %+v", name, e)
				}
			}
			if e := last("freed"); e.Type != "run_end" || e.State != "failed" || e.Reason != "disk_full" || read("freed.code") != "0" {
				t.Errorf("with space again: the last line is %+v: %s", e, read("freed.err"))
			}
			if read("freedwait.code") != "1" {
				t.Errorf("wait with space again: %s", read("freedwait.err"))
			}
			for _, name := range []string{"ps", "freedps"} {
				if text := read(name + ".out"); strings.Contains(text, `"running"`) || !strings.Contains(text, `"failed"`) {
					t.Errorf("%s: %s", name, text)
				}
			}
		})
	}
}
