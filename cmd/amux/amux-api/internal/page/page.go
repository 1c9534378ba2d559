// Package page is the web page of amux serve --http. It is made of files that a browser reads
// as they are, and draws what the HTTP API says. It holds nothing of the user's.
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed site
var site embed.FS

// Policy is the Content-Security-Policy: nothing but the files of this server is loaded, run
// or asked. Attributes may have styles, because the terminal colours its cells by them; no
// text of others becomes an attribute.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// kinds of files by their names' ends.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
	".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8",
}

// file is one as it is sent.
type file struct {
	kind         string
	plain, small []byte // small is compressed
	tag          string
}

// files are what the site has, by their addresses.
var files = sync.OnceValues(func() (map[string]*file, error) {
	all := map[string]*file{}
	err := fs.WalkDir(site, "site", func(name string, entry fs.DirEntry, err error) error {
		kind := kinds[path.Ext(name)]
		if err != nil || entry.IsDir() || kind == "" {
			return err
		}
		plain, err := site.ReadFile(name)
		if err != nil {
			return err
		}
		var small bytes.Buffer
		to := gzip.NewWriter(&small)
		if _, err := to.Write(plain); err != nil {
			return err
		}
		if err := to.Close(); err != nil {
			return err
		}
		sum := sha256.Sum256(plain)
		all["/"+strings.TrimPrefix(name, "site/")] = &file{kind, plain, small.Bytes(), `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
		return nil
	})
	all["/"] = all["/index.html"]
	return all, err
})

// Has reports whether the page has a file at an address.
func Has(address string) bool {
	all, err := files()
	return err == nil && all[address] != nil
}

// Serve answers with the file at the address, which Has knows.
func Serve(w http.ResponseWriter, r *http.Request) {
	all, err := files()
	f := all[r.URL.Path]
	if err != nil || f == nil {
		http.NotFound(w, r)
		return
	}
	head := w.Header()
	head.Set("Content-Type", f.kind)
	head.Set("Content-Security-Policy", Policy)
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cache-Control", "no-cache") // it is asked for again, and not sent again if it is the same
	head.Set("ETag", f.tag)
	head.Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	data := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		head.Set("Content-Encoding", "gzip")
		data = f.small
	}
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(data) // the client may have left
}
