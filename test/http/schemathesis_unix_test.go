//go:build unix

package http

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// schemathesis is the program, of the versions that testdata/requirements.txt names.
func schemathesis(t *testing.T) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if testing.Short() || err != nil {
		t.Skip("it needs python3, and -short leaves it out")
	}
	want, err := os.ReadFile("testdata/requirements.txt")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Abs("../../.cache/schemathesis")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	lock := flock.New(dir + ".installing")
	if _, err := lock.TryLockContext(ctx, 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	stamp, program := filepath.Join(dir, "stamp"), filepath.Join(dir, "bin", "schemathesis")
	if have, err := os.ReadFile(stamp); err == nil && bytes.Equal(have, want) {
		return program
	}
	if os.Getenv("AMUX_TEST_OFFLINE") != "" {
		t.Skip("schemathesis is not in .cache, and AMUX_TEST_OFFLINE is set")
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{
		{python, "-m", "venv", dir},
		{filepath.Join(dir, "bin", "pip"), "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--disable-pip-version-check", "-r", "testdata/requirements.txt"},
	} {
		if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q (AMUX_TEST_OFFLINE=1 leaves it out): %v\n%s", argv, err, out)
		}
	}
	if err := os.WriteFile(stamp, want, 0o644); err != nil {
		t.Fatal(err)
	}
	return program
}

var generated = regexp.MustCompile(`(\d+) generated`)

// What the document lets a client send is answered as the document says, and nothing makes
// the server fail.
func TestDocumentHolds(t *testing.T) {
	t.Parallel()
	program := schemathesis(t)
	s := start(t)
	s.begin("[approve][sleep:600]", map[string]any{"name": "nightly"}) // the example of a run
	examples := "10"
	if full() {
		examples = "300"
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "run", s.url+"/v1/openapi.json", "-H", "Authorization: Bearer "+s.token,
		"--checks", "not_a_server_error,status_code_conformance,response_schema_conformance,content_type_conformance",
		"--exclude-path-regex", "/(screen|events|wait|log|watch)$", // that go on
		"--phases", "examples,coverage,fuzzing", "--max-examples", examples, "--seed", "1", "--request-timeout", "30", "--no-color")
	cmd.Dir, cmd.Env = t.TempDir(), s.Env
	out, err := cmd.CombinedOutput()
	if found := generated.FindSubmatch(out); found == nil || len(found[1]) < 3 {
		t.Errorf("too few requests:\n%s", out)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if strings.Contains(s.log.String(), "panic") {
		t.Error(s.log.String())
	}
}
