package page

import (
	"io/fs"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
)

// Every file of the site is served under its name with the policy, and nothing else is.
func TestServe(t *testing.T) {
	err := fs.WalkDir(site, "site", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "LICENSE" {
			return err
		}
		address := strings.TrimPrefix(name, "site")
		if !Has(address) {
			t.Errorf("%s is not served", address)
			return nil
		}
		w := httptest.NewRecorder()
		Serve(w, httptest.NewRequest("GET", address, nil))
		if w.Code != 200 || w.Header().Get("Content-Security-Policy") != Policy || w.Body.Len() == 0 {
			t.Errorf("%s: %d %v", address, w.Code, w.Header())
		}
		again := httptest.NewRequest("GET", address, nil)
		again.Header.Set("If-None-Match", w.Header().Get("ETag"))
		w = httptest.NewRecorder()
		Serve(w, again)
		if w.Code != 304 || w.Body.Len() != 0 {
			t.Errorf("%s is sent again: %d", address, w.Code)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"/site/index.html", "/../page.go", "/xterm", "/xterm/LICENSE", "", "//", "/index.html/"} {
		if Has(address) {
			t.Errorf("%q is served", address)
		}
	}
}

// The page needs no rule of the policy to be loosened: no code or style is in its markup, no
// text becomes markup, and nothing of elsewhere is named.
func TestSite(t *testing.T) {
	loose := regexp.MustCompile(`(?i)innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|<script>|\son[a-z]+="|style="|https?://[^w$]`)
	err := fs.WalkDir(site, "site", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Base(path.Dir(name)) == "xterm" {
			return err
		}
		text, err := site.ReadFile(name)
		if err != nil {
			return err
		}
		if found := loose.Find(text); found != nil {
			t.Errorf("%s has %q", name, found)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
