package real

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/fakemodel"
	"github.com/amux-dev/amux/pluginapi"
)

// cause is a reason for which a run fails. Whatever the agent, amux says the same of it.
type cause struct {
	name      string
	code      pluginapi.Code
	retryable bool
	do        func(r *run, args ...string)
}

// says runs a prompt, and every request that the agent makes for it has the same script of
// the fake model.
func says(script string) func(*run, ...string) {
	return func(r *run, args ...string) {
		marker := "[fm:" + script + "]"
		r.model.Always(marker)
		r.once(marker, args...)
	}
}

// causes are the lines of the table.
var causes = []cause{
	{"the provider answers 401", pluginapi.CodeAuth, false, says("401")},
	{"the provider answers 403", pluginapi.CodeAuth, false, says("403")},
	{"the provider answers 402", pluginapi.CodeBilling, false, says("402")},
	{"the quota is used up", pluginapi.CodeBilling, false, says("quota")},
	{"no credit is left", pluginapi.CodeBilling, false, says("credit")},
	{"429 with Retry-After", pluginapi.CodeRateLimited, true, says("429=1")},
	{"429 without Retry-After", pluginapi.CodeRateLimited, true, says("429=0")},
	{"the provider answers 500", pluginapi.CodeOverloaded, true, says("500")},
	{"the provider answers 529", pluginapi.CodeOverloaded, true, says("529")},
	{"the connection is reset at once", pluginapi.CodeNetwork, true, says("drop")},
	{"the connection is reset in the middle", pluginapi.CodeNetwork, true, says("drop=3")},
	{"the provider's name is not known", pluginapi.CodeNetwork, true, func(r *run, args ...string) {
		r.provider = "http://provider.invalid"
		r.once("[fm:text]", args...)
	}},
	{"the provider's certificate is not trusted", pluginapi.CodeNetwork, true, func(r *run, args ...string) {
		server := httptest.NewTLSServer(nil)
		r.t.Cleanup(server.Close)
		r.provider = server.URL
		r.once("[fm:text]", args...)
	}},
	{"an unknown model", pluginapi.CodeValidation, false, func(r *run, args ...string) {
		name := fakemodel.UnknownModel
		if provider, _, ok := strings.Cut(r.agent.model, "/"); ok {
			name = provider + "/" + name
		}
		r.once("[fm:text]", append(args, "--model", name)...)
	}},
	{"no model", pluginapi.CodeConfig, false, func(r *run, args ...string) {
		r.env = append(r.env, "COPILOT_MODEL=")
		r.once("[fm:text]", args...)
	}},
	{"a flag that the agent does not know", pluginapi.CodeValidation, false, badFlag},
	{"the context is full", pluginapi.CodeContextExceeded, false, says("context")},
	{"the model goes round in circles", pluginapi.CodeTurnLimit, false, func(r *run, args ...string) {
		if r.agent.id == "gemini" {
			// It has no flag for it, and finds loops by itself.
			r.model.Always("[fm:stuck]")
			r.once("[fm:stuck]", append(args, "--approve", "auto")...)
			return
		}
		r.once("[fm:loop]", append(args, "--approve", "auto", "--max-turns", "2")...)
	}},
	{"the provider's policy forbids an answer", pluginapi.CodeAgentFailed, false, says("refusal")},
	{"the agent is killed", pluginapi.CodeAgentCrash, true, func(r *run, args ...string) {
		r.start(append([]string{"[fm:hang]"}, args...)...)
		r.stdin.Close()
		ctx, cancel := context.WithTimeout(r.t.Context(), max(scenarioTime, r.agent.patience))
		defer cancel()
		if _, err := r.model.Wait(ctx, func(q fakemodel.Request) bool { return q.Script == "hang" }); err != nil {
			r.t.Fatal(err)
		}
		for len(r.events) == 0 {
			r.read()
		}
		pid := r.leader()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			r.t.Fatal(err)
		}
		r.wait()
	}},
	{"the disk of the work folder is full", "", false, func(r *run, args ...string) {
		r.fullDisk()
		r.once("[fm:write="+r.path("a.txt")+"]", append(args, "--approve", "auto")...)
		told := r.asked(-1)
		// Codex and OpenCode tell the model that the file could not be written, and not why.
		why := []string{"ENOSPC", "o space left", "Failed to write file", "FileSystem.writeFile"}
		if !slices.ContainsFunc(why, told.contains) {
			r.t.Errorf("the model was not told: %q", told.Texts)
		}
	}},
}

// lacksCause is why an agent has no such cause; empty: it has.
func (a agentRow) lacksCause(name, driver string) string {
	switch {
	case name == "no model" && a.id != "copilot":
		return "tried where a variable alone chooses the model; the settings of the others name one, or they have a default"
	case name == "the model goes round in circles" && driver == "exec":
		return "the driver exec has no limit of requests"
	case name == "the model goes round in circles" && a.id != "gemini":
		return a.na["max turns"]
	}
	return ""
}

// badFlag puts a program before the agent's in PATH, that gives it a flag more: what
// somebody does who has a wrapper of his own.
func badFlag(r *run, args ...string) {
	r.t.Helper()
	bin := filepath.Join(r.dir, "wrapped")
	program, err := tc.Program(r.agent.program)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.Mkdir(bin, 0o700); err != nil {
		r.t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\ncase \"$1\" in --version|version) exec %[1]q \"$@\";; esac\nexec %[1]q --unheard-of \"$@\"\n", program)
	if err := os.WriteFile(filepath.Join(bin, r.agent.program), []byte(script), 0o700); err != nil {
		r.t.Fatal(err)
	}
	r.env = append(r.env, "PATH="+bin+string(os.PathListSeparator)+tc.Path()+string(os.PathListSeparator)+binDir())
	r.once("[fm:text]", args...)
	_, exempt := r.agent.elsewise["a flag that the agent does not know"]
	if end := r.end(); !exempt && !strings.Contains(end.Message, "--unheard-of") {
		r.t.Errorf("the message does not name the flag: %q", end.Message)
	}
}

// leader is the agent's own process, below the shim.
func (r *run) leader() int {
	r.t.Helper()
	parents, commands := map[int]int{}, map[int]string{}
	for _, p := range processesWith(r.events[0].RunID) {
		number, command, _ := strings.Cut(p, " ")
		pid, _ := strconv.Atoi(number)
		stat, _ := os.ReadFile(filepath.Join("/proc", number, "stat"))
		after := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(after) > 1 {
			parents[pid], _ = strconv.Atoi(after[1])
			commands[pid] = command
		}
	}
	shim := func(pid int) bool {
		command, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		name, _, _ := strings.Cut(string(command), "\x00")
		return slices.Contains([]string{"amux-shim", "amux-bridge"}, filepath.Base(name))
	}
	for pid, parent := range parents {
		if shim(parent) && !shim(pid) && !strings.Contains(commands[pid], "amux") {
			return pid
		}
	}
	r.t.Fatalf("no process of the agent among %v", commands)
	return 0
}

// fullDisk makes the work folder one on a disk that is full.
func (r *run) fullDisk() {
	r.t.Helper()
	if err := syscall.Mount("amux-test", r.cwd, "tmpfs", 0, "size=64k,mode=700"); err != nil {
		r.t.Fatalf("mount a small disk: %v", err)
	}
	r.t.Cleanup(func() { syscall.Unmount(r.cwd, syscall.MNT_DETACH) })
	file, err := os.Create(r.path("filler"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer file.Close()
	for block := make([]byte, 4096); ; {
		if _, err := file.Write(block); err != nil {
			return
		}
	}
}

// retryable reports whether a run's events say that it may be tried again.
func (r *run) retryable(code pluginapi.Code) bool {
	r.t.Helper()
	switch code {
	case pluginapi.CodeRateLimited, pluginapi.CodeAgentCrash:
		return true
	}
	found := false
	for _, e := range all[pluginapi.ErrorEvent](r) {
		if e.Code == code {
			found = e.Recoverable
		}
	}
	return found
}

// TestCauses checks that the same cause has the same code, whatever the agent.
func TestCauses(t *testing.T) {
	type column struct {
		agentRow
		driver string
	}
	columns := []column{{codex, "exec"}}
	for _, a := range agents {
		columns = append(columns, column{a, ""})
	}
	for _, col := range columns {
		name, prefix, args := col.id, "", []string(nil)
		if col.driver != "" {
			name, prefix, args = col.id+"-"+col.driver, col.driver+": ", []string{"--driver", col.driver}
		}
		// Its own tries take long, most of all on a busy machine.
		col.patience = max(col.patience, 4*time.Minute)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range causes {
				if !selected(col.agentRow, "cause: "+prefix+c.name) {
					continue
				}
				t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
					t.Parallel()
					if reason := col.lacksCause(c.name, col.driver); reason != "" {
						report.cause(col.id, prefix+c.name, "n.a.: "+reason)
						t.Skip(reason)
					}
					r := newRun(t, col.agentRow)
					c.do(r, args...)
					end := r.end()
					want, state, retryable := c.code, "failed", c.retryable
					other, exempt := col.elsewise[c.name]
					if exempt {
						want, retryable = other.code, r.retryable(other.code)
					}
					if want == "" {
						state = "completed"
					}
					got := fmt.Sprintf("%s %s, retryable %v, exit %d", end.State, end.Code, r.retryable(end.Code), r.exit)
					if want := fmt.Sprintf("%s %s, retryable %v, exit %d", state, want, retryable, exitOf(want)); got != want {
						t.Fatalf("%s, want %s: %s", got, want, end.Message)
					}
					said := string(end.Code)
					if exempt {
						said += ": " + other.reason
					}
					report.cause(col.id, prefix+c.name, said)
				})
			}
		})
	}
}

// exitOf is the exit code of amux for a code; 0 for none.
func exitOf(code pluginapi.Code) int {
	if code == "" {
		return 0
	}
	return code.Info().Exit
}
