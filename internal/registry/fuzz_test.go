package registry

import (
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

// A project's lock comes with a cloned repository. Whatever is in it, it is read or
// refused with a typed error of one short line.
func FuzzParseLock(f *testing.F) {
	f.Add([]byte("lock = 1\n[[plugin]]\nname = \"others\"\nversion = \"0.1.0\"\nsource = \"gh:a/b\"\nh1 = { linux_amd64 = \"h1:x\" }\n"))
	f.Add([]byte("lock = 1\n[[plugin]]\nname = \"others\"\nlink = \"/tmp\"\n"))
	f.Add([]byte("lock = \"x\"\n[plugin]\n"))
	f.Add([]byte("lock = 99\nnew = 1\n"))
	f.Add([]byte(strings.Repeat("a.", 100) + "a = 1"))
	f.Add([]byte("a = " + strings.Repeat("[", 20000)))
	f.Fuzz(func(t *testing.T, data []byte) {
		lock, err := parseLock("plugins.lock", data, nil)
		if err == nil {
			if lock.Lock != lockMax {
				t.Errorf("a lock of format %d was read", lock.Lock)
			}
			return
		}
		e := pluginapi.AsError(err)
		if e.Code != pluginapi.CodeConfig || e.Hint == "" || len(e.Error()) > 1000 || strings.Contains(e.Error(), "\n") || strings.Contains(e.Error(), "struct field") {
			t.Errorf("%s: %q, hint %q", e.Code, e.Error(), e.Hint)
		}
	})
}
