package real

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amux-dev/amux/pluginapi"
)

// TestOpencodeOptions is what OpenCode has besides the scenarios: a session of 30 MB,
// which its own export prints in one piece, and which amux reads in less than it has.
func TestOpencodeOptions(t *testing.T) {
	t.Parallel()
	agent := opencodeRow
	unlessSelected(t, agent, "a long session")
	r := newRun(t, agent)
	r.once("[fm:text] remember the milk")
	r.ok(1)
	opencode := func(args ...string) []byte {
		cmd := r.amux(t.Context())
		path, err := tc.Program("opencode")
		if err != nil {
			t.Fatal(err)
		}
		cmd.Path, cmd.Args = path, append([]string{"opencode"}, args...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("opencode %v: %v\n%s", args, err, stderrOf(err))
		}
		return out
	}
	const id, answers = "ses_amuxtest0000000000000000001", 30
	file := r.path("long.json")
	long := longSession(t, opencode("export", one[pluginapi.SessionStart](r).SessionID), id, answers)
	if err := os.WriteFile(file, long, 0o600); err != nil {
		t.Fatal(err)
	}
	opencode("import", file)

	show := r.amux(t.Context(), "sessions", "show", id, "--agent", "opencode", "--json")
	var shown lineCounter
	var stderr bytes.Buffer
	show.Stdout, show.Stderr = &shown, &stderr
	if err := show.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var peaks map[string]int
	var watch sync.WaitGroup
	watch.Go(func() { peaks = memoryOf(show.Process.Pid, done) })
	err := show.Wait()
	close(done)
	watch.Wait()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	if shown.bytes < answers<<20 || shown.ends != 1 {
		t.Errorf("%d bytes of the session's %d, %d times session_end", shown.bytes, len(long), shown.ends)
	}
	t.Logf("memory in MB: %v", peaks)
	if len(peaks) < 2 {
		t.Errorf("amux and its plugin were not seen: %v", peaks)
	}
	for name, peak := range peaks {
		if peak > 64 {
			t.Errorf("%s took %d MB", name, peak)
		}
	}
	if left, err := filepath.Glob(filepath.Join(r.dir, "tmp", "agent-mux-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// longSession makes of an exported session one with many answers of a megabyte.
func longSession(t *testing.T, export []byte, id string, answers int) []byte {
	t.Helper()
	type object = map[string]any
	var session struct {
		Info     object `json:"info"`
		Messages []struct {
			Info  object   `json:"info"`
			Parts []object `json:"parts"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(export, &session); err != nil || len(session.Messages) < 2 {
		t.Fatalf("%v\n%s", err, export)
	}
	session.Info["id"] = id
	first := session.Messages[:2]
	session.Messages = nil
	text := strings.Repeat("y", 1<<20)
	for i := range answers {
		name := func(n int) string { return fmt.Sprintf("%06d%d0000000000000000000", i, n) }
		for n, from := range first {
			message := from
			message.Info = maps.Clone(from.Info)
			message.Info["id"], message.Info["sessionID"] = "msg_"+name(n), id
			part := object{"type": "text", "text": strconv.Itoa(i), "id": "prt_" + name(n), "messageID": "msg_" + name(n), "sessionID": id}
			if message.Info["role"] == "assistant" {
				message.Info["parentID"] = "msg_" + name(0)
				part["text"] = text
			}
			message.Parts = []object{part}
			session.Messages = append(session.Messages, message)
		}
	}
	data, err := json.Marshal(session)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// lineCounter counts what is written to it.
type lineCounter struct {
	bytes, ends int
	tail        []byte
}

func (c *lineCounter) Write(b []byte) (int, error) {
	const end = `"type":"session_end"`
	c.bytes += len(b)
	c.tail = append(c.tail, b...)
	c.ends += bytes.Count(c.tail, []byte(end))
	c.tail = append(c.tail[:0], c.tail[max(0, len(c.tail)-len(end)+1):]...)
	return len(b), nil
}

var _ io.Writer = (*lineCounter)(nil)

// memoryOf looks at a process and its children until done, and says how many megabytes
// each has had at most, but for opencode itself.
func memoryOf(pid int, done <-chan struct{}) map[string]int {
	peaks := map[string]int{}
	for look := time.Tick(20 * time.Millisecond); ; {
		select {
		case <-done:
			return peaks
		case <-look:
		}
		entries, _ := os.ReadDir("/proc")
		for _, e := range entries {
			status, err := os.ReadFile(filepath.Join("/proc", e.Name(), "status"))
			if err != nil {
				continue
			}
			field := func(name string) string {
				_, rest, _ := strings.Cut(string(status), "\n"+name+":")
				value, _, _ := strings.Cut(rest, "\n")
				return strings.TrimSpace(strings.TrimSuffix(value, "kB"))
			}
			if e.Name() != strconv.Itoa(pid) && field("PPid") != strconv.Itoa(pid) {
				continue
			}
			target, _ := os.Readlink(filepath.Join("/proc", e.Name(), "exe"))
			name := filepath.Base(target)
			if kilobytes, err := strconv.Atoi(field("VmHWM")); err == nil && !strings.Contains(name, "opencode") {
				peaks[name] = max(peaks[name], kilobytes>>10)
			}
		}
	}
}
