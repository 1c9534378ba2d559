//go:build unix

package place

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Who the agent is in a container depends on what the engine makes of users.
func TestUserFlags(t *testing.T) {
	t.Parallel()
	plain := []string{"--user", "1000:100"}
	for what, c := range map[string]struct {
		info string // what the engine says of itself
		uid  int
		want []string
	}{
		"docker":                 {`echo '{"SecurityOptions":["name=seccomp,profile=builtin"]}'`, 1000, plain},
		"docker without root":    {`echo '{"SecurityOptions":["name=seccomp,profile=builtin","name=rootless"]}'`, 1000, []string{"--user", "0:0"}},
		"podman":                 {`echo '{"host":{"security":{"rootless":false}}}'`, 1000, plain},
		"podman without root":    {`echo '{"host":{"security":{"rootless":true}}}'`, 1000, append(slices.Clone(plain), "--userns", "keep-id")},
		"root, who is not asked": {`echo '{"SecurityOptions":["name=rootless"]}'`, 0, []string{"--user", "0:100"}},
		"no answer":              {`echo no daemon >&2; exit 1`, 1000, plain},
		"nonsense":               {`echo '['`, 1000, plain},
	} {
		engine := filepath.Join(t.TempDir(), "engine")
		script := "#!/bin/sh\n[ \"$*\" = \"info --format {{json .}}\" ] || exit 2\n" + c.info + "\n"
		if err := os.WriteFile(engine, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		if got := (Dialer{}).userFlags(t.Context(), Place{Name: "box", Image: "i", Engine: engine}, c.uid, 100); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
