package git

import (
	"strings"
	"testing"
)

func FuzzParseFiles(f *testing.F) {
	id := strings.Repeat("1", 40)
	f.Add(":100644 100755 " + id + " " + id + " M\x00a\x00" + "1\t2\ta\x00")
	f.Add(":100644 100644 " + id + " " + id + " R086\x00a\x00b\x00" + "-\t-\t\x00a\x00b\x00")
	f.Add(":000000 160000 " + id + " " + id + " A\x00a\nb\x00" + "1\t0\ta\nb\x00")
	f.Fuzz(func(t *testing.T, text string) {
		files, err := parseFiles(text)
		if err != nil {
			return
		}
		for _, file := range files {
			if file.Path == "" || file.Status == "" || !IsID(file.OldID) || !IsID(file.NewID) || file.Added < 0 || file.Deleted < 0 ||
				(file.OldPath != "") != (file.Status == "renamed") {
				t.Errorf("%+v", file)
			}
		}
		if want := strings.Count(text, ":"); len(files) > want {
			t.Errorf("%d files of %q", len(files), text)
		}
	})
}
