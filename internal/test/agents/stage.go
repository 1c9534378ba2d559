//go:build unix

package agents

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
)

// Run is the body of a TestMain: the process may be one of the cast.
func Run(m *testing.M) {
	Main()
	code := m.Run()
	if shim.dir != "" {
		_ = os.RemoveAll(shim.dir)
	}
	os.Exit(code)
}

// Stage is a set of folders for hosts, with short paths for their sockets.
type Stage struct {
	t       testing.TB
	Root    string
	Config  string
	Runtime string
	Temp    string
	Plugins string
}

// NewStage makes the folders and installs plugins: names and what is wrong with
// them, in turn.
func NewStage(t testing.TB, plugins ...string) *Stage {
	t.Helper()
	root, err := os.MkdirTemp("/tmp", "ax")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	s := &Stage{t, root, root + "/config", root + "/run", root + "/tmp", root + "/plugins"}
	for _, dir := range []string{s.Runtime, s.Temp, s.Plugins} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; i < len(plugins); i += 2 {
		if err := Install(s.Plugins, plugins[i], Trouble(plugins[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Options are those of a host on this stage.
func (s *Stage) Options() host.Options {
	s.t.Helper()
	return host.Options{
		ConfigDir: s.Config, RuntimeDir: s.Runtime, TempDir: s.Temp, BundledDir: s.Plugins, ShimPath: Shim(s.t),
	}
}

// Host is a new host on this stage, closed at the end of the test.
func (s *Stage) Host() *host.Host {
	s.t.Helper()
	h, err := host.New(s.Options())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = h.Close(ctx)
	})
	return h
}

// Start starts a run or ends the test. A run that hangs ends by itself.
func (s *Stage) Start(h *host.Host, spec host.RunSpec) *host.Run {
	s.t.Helper()
	if spec.Timeout == 0 {
		spec.Timeout = time.Minute
	}
	if spec.Grace == 0 {
		spec.Grace = 100 * time.Millisecond
	}
	r, err := h.Start(context.Background(), spec)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// Leftovers are the files in runtime and temp folder.
func (s *Stage) Leftovers() []string {
	var found []string
	for _, dir := range []string{s.Runtime, s.Temp} {
		_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			if err == nil && path != dir {
				found = append(found, path)
			}
			return nil
		})
	}
	return found
}

var shim struct {
	sync.Mutex
	dir string
}

// Shim is the shim's executable, built once, with amux-schema beside it.
func Shim(t testing.TB) string {
	t.Helper()
	shim.Lock()
	defer shim.Unlock()
	path := filepath.Join(shim.dir, "amux-shim")
	if shim.dir != "" {
		return path
	}
	dir, err := os.MkdirTemp("", "amux-shim-")
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", dir, "github.com/amux-dev/amux/cmd/amux-shim", "github.com/amux-dev/amux/cmd/amux-schema")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build amux-shim and amux-schema: %v\n%s", err, out)
	}
	shim.dir = dir
	return filepath.Join(dir, "amux-shim")
}

// Eventually waits until done, and ends the test when it takes longer than limit.
func Eventually(t testing.TB, limit time.Duration, what string, done func() bool) time.Duration {
	t.Helper()
	since := time.Now()
	for !done() {
		if time.Since(since) > limit {
			t.Fatalf("not within %v: %s", limit, what)
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(since)
}

// Full reports whether the long version of a test is wanted.
func Full() bool { return os.Getenv("AMUX_CHAOS") != "" }

// Times is few, or many in the long version.
func Times(few, many int) int {
	if Full() {
		return many
	}
	return few
}

// longest is how long one test goes on that counts its rounds; in the long version
// longer.
const (
	longest = 4 * time.Minute
	longer  = 10 * time.Minute
)

// Rounds counts rounds from 0: few, or in the long version many, unless time is over
// before: a busy machine gets less far. It logs how many there were.
func Rounds(t testing.TB, few, many int) iter.Seq[int] {
	return func(yield func(int) bool) {
		n, last, limit := 0, few, longest
		if Full() {
			last, limit = many, longer
		}
		since := time.Now()
		defer func() { t.Logf("%d of %d rounds in %v", n, last, time.Since(since).Round(time.Millisecond)) }()
		for ; n < last && (n == 0 || time.Since(since) < limit); n++ {
			if t.Failed() || !yield(n) {
				return
			}
		}
	}
}

var (
	timeRule    = regexp.MustCompile(`"time":"[^"]*"`)
	numberRule  = regexp.MustCompile(`"seq":[0-9]+`)
	tookRule    = regexp.MustCompile(`"duration_ms":[0-9]+`)
	sessionRule = regexp.MustCompile(`"session_id":"[^"]*"`)
	pidRule     = regexp.MustCompile(`pid [a-z]+ [0-9]+`)
)

// Comparable is what events must have in common with those of another run of the
// same script: they lose run id, time, session id, pids and numbers. The host's
// changes of state come first, since where they stand among the agent's events
// depends on who was quicker.
func Comparable(t testing.TB, events []byte) string {
	t.Helper()
	var states, others bytes.Buffer
	for n, line := range bytes.SplitAfter(events, []byte{'\n'}) {
		if len(line) == 0 {
			continue
		}
		if want := fmt.Sprintf(`"seq":%d,`, n+1); !bytes.Contains(line[:min(len(line), 300)], []byte(want)) {
			t.Fatalf("event %d has another number: %.300s", n+1, line)
		}
		to := &others
		if bytes.HasPrefix(line, []byte(`{"type":"run_state"`)) {
			to = &states
		}
		to.Write(line)
	}
	text := states.String() + others.String()
	if first, rest, found := strings.Cut(text, `"run_id":"`); found && first != "" {
		id, _, _ := strings.Cut(rest, `"`)
		text = strings.ReplaceAll(text, id, "RUN")
	}
	text = timeRule.ReplaceAllString(text, `"time":"T"`)
	text = numberRule.ReplaceAllString(text, `"seq":0`)
	text = tookRule.ReplaceAllString(text, `"duration_ms":0`)
	text = sessionRule.ReplaceAllString(text, `"session_id":"S"`)
	return pidRule.ReplaceAllString(text, "pid P")
}

// Difference shows where two texts part, or is empty.
func Difference(got, want string) string {
	if got == want {
		return ""
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		a, b := "(nothing)", "(nothing)"
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			return fmt.Sprintf("line %d of %d, want %d:\n got %.400s\nwant %.400s", i+1, len(g), len(w), a, b)
		}
	}
	return "line endings"
}
