package shim

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
)

// A host's shims all look whether it has died: each of them seldom, or its thousand would keep it
// from dying.
func TestClearHostLooksSeldom(t *testing.T) {
	for _, c := range []struct {
		name  string
		dies  int // at this look; 0: never
		looks int
	}{
		{"at once", 1, 1},
		{"soon", 4, 4},
		{"not while it is looked", 0, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "host")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			looks := 0
			synctest.Test(t, func(t *testing.T) {
				clearHost(Hello{HostDir: dir, HostPID: 7, HostStart: 9}, func(pid int, start uint64) bool {
					if pid != 7 || start != 9 {
						t.Errorf("process %d that started at %d is looked at", pid, start)
					}
					looks++
					return looks != c.dies
				})
			})
			if looks != c.looks {
				t.Errorf("%d looks, want %d", looks, c.looks)
			}
			_, err := os.Stat(dir)
			if there := err == nil; there != (c.dies == 0) {
				t.Errorf("its folder is there: %v", there)
			}
		})
	}
}
