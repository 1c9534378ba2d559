//go:build unix

package install

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
	jedisct1 "github.com/jedisct1/go-minisign"

	"github.com/amux-dev/amux/pluginapi"
)

// serve serves the author's releases over TLS, with a client that knows its
// certificate, and keeps the rules of the real client about redirects.
func (w *workshop) serve(handler http.Handler) *httptest.Server {
	server := httptest.NewTLSServer(handler)
	w.t.Cleanup(server.Close)
	client := NewClient()
	client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	w.opts.HTTP = client
	return server
}

func TestResolve(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.opts.Mirrors = []Mirror{{Root: "/srv/plugins"}}
	dir := w.release("acme", "1.0.0", "", nil)
	archive := ArchiveName("acme", "1.0.0", "linux/amd64")
	sum := strings.Repeat("a", 64)
	w.must(os.MkdirAll(filepath.Join(w.dist, "empty"), 0o755))
	w.must(os.WriteFile(filepath.Join(w.dist, "some.zip"), nil, 0o644))
	for _, test := range []struct {
		text, source, constraint, says string
		code                           pluginapi.Code
	}{
		{text: dir, source: "file:" + dir},
		{text: "./acme/1.0.0/" + ArchiveName("acme", "1.0.0", Platform()), source: "file:" + filepath.Join(dir, ArchiveName("acme", "1.0.0", Platform()))},
		{text: "https://example.com/x/" + archive, source: "https://example.com/x/" + archive},
		{text: "https://example.com/x/" + archive + "#sha256=" + sum, source: "https://example.com/x/" + archive},
		{text: "gh:acme/amux-plugin-acme", source: "gh:acme/amux-plugin-acme"},
		{text: "gh:acme/amux-plugin-acme@1.2.0", source: "gh:acme/amux-plugin-acme", constraint: "1.2.0"},
		{text: "acme", source: "mirror:/srv/plugins"},
		{text: "acme@^1.2", source: "mirror:/srv/plugins", constraint: "^1.2"},

		{text: "", code: pluginapi.CodeValidation, says: "it is empty"},
		{text: "http://example.com/" + archive, code: pluginapi.CodeValidation, says: "without TLS"},
		{text: "https://example.com/plugin.tar.gz", code: pluginapi.CodeValidation, says: "is not named"},
		{text: "https://user:secret@example.com/" + archive, code: pluginapi.CodeValidation, says: "no address"},
		{text: "https://example.com/" + archive + "#sha256=abc", code: pluginapi.CodeValidation, says: "64 of"},
		{text: "https://example.com/" + archive + "#md5=abc", code: pluginapi.CodeValidation, says: "sha256="},
		{text: "gh:acme", code: pluginapi.CodeValidation, says: "gh:owner/repo"},
		{text: "gh:a/b/c", code: pluginapi.CodeValidation, says: "gh:owner/repo"},
		{text: "gh:../x", code: pluginapi.CodeValidation, says: "gh:owner/repo"},
		{text: "gh:acme/x@", code: pluginapi.CodeValidation, says: "gh:owner/repo"},
		{text: "oci://host/repo", code: pluginapi.CodeValidation, says: "is not known"},
		{text: "npm:acme", code: pluginapi.CodeValidation, says: "is not known"},
		{text: "acme@", code: pluginapi.CodeValidation, says: "no version follows"},
		{text: "Acme", code: pluginapi.CodeValidation, says: "acme"},
		{text: "con", code: pluginapi.CodeValidation, says: "no name"},
		{text: "../acme/../../x", code: pluginapi.CodePluginNotFound, says: "no such file"},
		{text: "acme/1.0.0", code: pluginapi.CodeValidation, says: "type ./acme/1.0.0"},
		{text: "./empty", code: pluginapi.CodePluginNotFound, says: "holds neither"},
		{text: "./gone", code: pluginapi.CodePluginNotFound, says: "no such file"},
		{text: "./some.zip", code: pluginapi.CodeValidation, says: "is not named"},
	} {
		t.Run(test.text, func(t *testing.T) {
			place, err := w.installer().Resolve(test.text, w.dist)
			if test.code != "" {
				oneLine(t, err, test.code, test.says)
				return
			}
			if err != nil || place.Source.String() != test.source || place.Constraint != test.constraint {
				t.Fatalf("got %v %q, %v", place.Source, place.Constraint, err)
			}
			// What the lock records leads to the same place.
			again, err := w.installer().Reopen("acme", test.source)
			if err != nil || again.String() != test.source {
				t.Errorf("reopened: %v, %v", again, err)
			}
		})
	}
	_, err := w.installer().Reopen("acme", "oci:host/repo")
	oneLine(t, err, pluginapi.CodeConfig, "does not know")
}

func TestHTTPS(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.trust("acme", "acme")
	mux := http.NewServeMux()
	mux.Handle("/files/", http.StripPrefix("/files/", http.FileServer(http.Dir(w.dist))))
	mux.HandleFunc("/moved/", func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, strings.Replace(r.URL.Path, "/moved/", "/files/acme/1.0.0/", 1), http.StatusFound)
	})
	mux.HandleFunc("/plain/", func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "http://example.invalid/x", http.StatusFound)
	})
	mux.HandleFunc("/loop/", func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, r.URL.Path, http.StatusFound) })
	mux.HandleFunc("/failing/", func(rw http.ResponseWriter, r *http.Request) {
		http.Error(rw, "no", http.StatusServiceUnavailable)
	})
	mux.HandleFunc("/torn/", func(rw http.ResponseWriter, r *http.Request) {
		data, err := os.ReadFile(filepath.Join(w.dist, "acme", "1.0.0", path.Base(r.URL.Path)))
		if err != nil {
			http.NotFound(rw, r)
			return
		}
		rw.Header().Set("Content-Length", fmt.Sprint(len(data)))
		if strings.HasSuffix(r.URL.Path, archiveSuffix) {
			data = data[:len(data)/2]
		}
		_, _ = rw.Write(data)
	})
	server := w.serve(mux)
	archive := ArchiveName("acme", "1.0.0", Platform())
	dir := w.release("acme", "1.0.0", "acme", nil)
	data, _ := os.ReadFile(filepath.Join(dir, archive))

	w.refused(w.place(server.URL+"/files/acme/9.9.9/"+ArchiveName("acme", "9.9.9", Platform())), pluginapi.CodePluginNotFound, "there is no amux-plugin-acme_9.9.9")
	w.refused(w.place(server.URL+"/plain/"+archive), pluginapi.CodePlugin, "without TLS")
	w.refused(w.place(server.URL+"/loop/"+archive), pluginapi.CodePlugin, "without end")
	w.refused(w.place(server.URL+"/failing/"+archive+"?token=secret"), pluginapi.CodePlugin, "503")
	w.refused(w.place(server.URL+"/torn/"+archive), pluginapi.CodePlugin, "the connection broke")
	w.refused(w.place(server.URL+"/files/acme/1.0.0/"+archive+"#sha256="+strings.Repeat("0", 64)), pluginapi.CodePluginUntrusted, strings.Repeat("0", 64), sha256Hex(data))
	if got := w.install(server.URL + "/moved/" + archive); got.Trust[:6] != "signed" {
		t.Errorf("got %+v", got)
	}
	// The next version lies beside it: the same source.
	w.release("acme", "1.1.0", "acme", nil)
	w.must(os.RemoveAll(filepath.Join(w.dir)))
	w.trust("acme", "acme")
	w.install(server.URL + "/files/acme/1.0.0/" + archive)
	w.install(server.URL + "/files/acme/1.1.0/" + ArchiveName("acme", "1.1.0", Platform()))

	// Unsigned, with the hash in the address.
	bare := newWorkshop(t)
	bare.opts.HTTP = w.opts.HTTP
	w.must(os.Remove(filepath.Join(dir, SignatureName)))
	bare.refused(bare.place(server.URL+"/files/acme/1.0.0/"+archive), pluginapi.CodePluginUntrusted, "is not signed")
	if got := bare.install(server.URL + "/files/acme/1.0.0/" + archive + "#sha256=" + sha256Hex(data)); got.Trust != "checksum pinned" {
		t.Errorf("got %+v", got)
	}

	// A certificate that nobody vouches for.
	stranger := newWorkshop(t)
	stranger.refused(stranger.place(server.URL+"/files/acme/1.0.0/"+archive), pluginapi.CodePlugin, "certificate")
}

// githubLike is a look-alike of the releases API.
type githubLike struct {
	w     *workshop
	token string // that it asks for; empty: none
	asked []string
	evil  string // if set, the host that assets are said to lie at
	tags  []string
}

func (g *githubLike) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	g.asked = append(g.asked, r.Method+" "+r.URL.String()+" "+r.Header.Get("Accept"))
	base := "https://" + r.Host
	if strings.HasPrefix(r.URL.Path, "/storage/") {
		if r.Header.Get("Authorization") != "" {
			http.Error(rw, "only one auth mechanism allowed", http.StatusBadRequest) // as the real storage answers
			return
		}
		http.StripPrefix("/storage/", http.FileServer(http.Dir(g.w.dist))).ServeHTTP(rw, r)
		return
	}
	if g.token != "" && r.Header.Get("Authorization") != "Bearer "+g.token {
		http.Error(rw, `{"message":"Not Found"}`, http.StatusNotFound) // private repositories do not exist for strangers
		return
	}
	asset, isAsset := strings.CutPrefix(r.URL.Path, "/repos/acme/amux-plugin-acme/releases/assets/")
	switch {
	case isAsset && r.Header.Get("Accept") == "application/octet-stream":
		http.Redirect(rw, r, "https://storage.invalid/storage/acme/"+strings.ReplaceAll(asset, ":", "/"), http.StatusFound)
	case r.URL.Path == "/repos/acme/amux-plugin-acme/releases":
		var releases []map[string]any
		for _, tag := range g.tags {
			var assets []map[string]any
			version := strings.TrimPrefix(tag, "v")
			entries, _ := os.ReadDir(filepath.Join(g.w.dist, "acme", version))
			for _, e := range entries {
				address := base
				if g.evil != "" {
					address = g.evil
				}
				assets = append(assets, map[string]any{"id": 1, "name": e.Name(), "url": address + "/repos/acme/amux-plugin-acme/releases/assets/" + version + ":" + e.Name()})
			}
			releases = append(releases, map[string]any{"tag_name": tag, "draft": strings.HasSuffix(tag, "9.0.0"), "assets": assets})
		}
		from := 0
		_, _ = fmt.Sscanf(r.URL.Query().Get("page"), "%d", &from)
		from = min((from-1)*pageSize, len(releases))
		_ = json.NewEncoder(rw).Encode(releases[from:min(from+pageSize, len(releases))])
	default:
		http.Error(rw, `{"message":"Not Found"}`, http.StatusNotFound)
	}
}

func TestGitHub(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.trust("acme", "acme")
	api := &githubLike{w: w, token: "t0ken"}
	server := w.serve(api)
	// The storage is another host, as it is in the world.
	address, err := url.Parse(server.URL)
	w.must(err)
	transport := w.opts.HTTP.Transport.(*http.Transport)
	transport.TLSClientConfig.InsecureSkipVerify = true
	w.opts.HTTP.Transport = rewrite{transport, address.Host}
	w.opts.GitHubAPI, w.opts.GitHubToken = server.URL, "t0ken"
	for i := range pageSize { // so that there is a second page
		api.tags = append(api.tags, fmt.Sprintf("nightly-%d", i))
	}
	api.tags = append(api.tags, "v1.0.0", "1.1.0", "v2.0.0-rc.1", "v9.0.0")
	for _, version := range []string{"1.0.0", "1.1.0", "2.0.0-rc.1"} {
		w.release("acme", version, "acme", nil)
	}

	if got := w.install("gh:acme/amux-plugin-acme"); got.Version != "1.1.0" {
		t.Errorf("the newest is %s", got.Version)
	}
	w.refused(w.place("gh:acme/amux-plugin-acme@1.0.0"), pluginapi.CodePluginUntrusted, "is older than")
	w.refused(w.place("gh:acme/amux-plugin-acme@^3"), pluginapi.CodePluginNotFound, "no version ^3", "there are: 2.0.0-rc.1, 1.1.0")
	w.refused(w.place("gh:acme/unknown"), pluginapi.CodePluginNotFound, "no such repository", "GH_TOKEN")
	w.install("gh:acme/amux-plugin-acme@v2.0.0-rc.1", func(r *Request) { r.Pin = true })
	_, err = w.installer().Upgrade(context.Background(), "acme", Request{})
	oneLine(t, err, pluginapi.CodeValidation, "is pinned")

	// Upgrades stay within the constraint, and see a changed signer.
	w.must(os.RemoveAll(w.dir))
	w.trust("acme", "acme")
	w.trust("heir", "acme")
	w.install("gh:acme/amux-plugin-acme@~1.0")
	w.release("acme", "1.0.5", "acme", nil)
	api.tags = append(api.tags, "v1.0.5")
	result, err := w.installer().Upgrade(context.Background(), "acme", Request{})
	if err != nil || result.Version != "1.0.5" || result.Previous != "1.0.0" {
		t.Fatalf("%+v, %v", result, err)
	}
	w.verify("acme", "1.0.5")
	w.release("acme", "1.0.6", "heir", nil)
	api.tags = append(api.tags, "v1.0.6")
	before := w.snapshot()
	_, err = w.installer().Upgrade(context.Background(), "acme", Request{})
	oneLine(t, err, pluginapi.CodePluginUntrusted, "is signed by heir", "--accept-signer")
	if w.snapshot() != before {
		t.Error("something has changed")
	}

	// The token goes to the API alone.
	w.must(os.RemoveAll(w.dir))
	api.evil = "https://evil.invalid"
	w.refused(w.place("gh:acme/amux-plugin-acme"), pluginapi.CodePlugin, "lies at another host")
	for _, asked := range api.asked {
		if strings.Contains(asked, "t0ken") {
			t.Errorf("the token is in an address: %s", asked)
		}
	}
	api.evil, w.opts.GitHubToken = "", "wrong"
	w.refused(w.place("gh:acme/amux-plugin-acme"), pluginapi.CodePluginNotFound, "no such repository")
}

// rewrite sends requests for any host to one server.
type rewrite struct {
	next http.RoundTripper
	host string
}

func (r rewrite) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Host, req.URL.Host = req.URL.Host, r.host
	if !strings.HasSuffix(req.Host, ".invalid") {
		req.Host = r.host
	}
	return r.next.RoundTrip(req)
}

func TestMirror(t *testing.T) {
	t.Parallel()
	author := newWorkshop(t)
	ctx := context.Background()
	root := filepath.Join(t.TempDir(), "mirror")
	for _, version := range []string{"1.0.0", "1.1.0"} {
		place, err := author.installer().Resolve(author.release("acme", version, "acme", nil), "/")
		author.must(err)
		name, got, err := author.installer().AddToMirror(ctx, root, place.Source, "", nil)
		if err != nil || name != "acme" || got != version {
			t.Fatalf("%s %s, %v", name, got, err)
		}
	}
	served := newWorkshop(t)
	server := served.serve(http.FileServer(http.Dir(root)))
	for _, test := range []struct {
		name, root string
		client     *http.Client
	}{{"folder", root, nil}, {"HTTPS", server.URL, served.opts.HTTP}} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorkshop(t)
			w.keys, w.opts.HTTP = author.keys, test.client
			w.opts.Mirrors = []Mirror{{Root: "/nowhere", Include: []string{"internal-*"}}, {Root: test.root, Exclude: []string{"secret"}}}
			w.trust("acme", "acme")
			if got := w.install("acme@1.0"); got.Version != "1.0.0" || got.Source != "mirror:"+test.root {
				t.Errorf("got %+v", got)
			}
			w.install("acme")
			w.refused(w.place("other"), pluginapi.CodePluginNotFound, "has no plugin named other")
			_, err := w.installer().Resolve("secret", "/")
			oneLine(t, err, pluginapi.CodePluginNotFound, "no mirror is set")
			// The first mirror that matches is the only one.
			w.refused(w.place("internal-acme"), pluginapi.CodePlugin, "mirror /nowhere")
		})
	}
	t.Run("index set back", func(t *testing.T) {
		w := newWorkshop(t)
		w.keys = author.keys
		w.opts.Mirrors = []Mirror{{Root: root}}
		w.trust("acme", "acme")
		w.install("acme")
		file := filepath.Join(root, "acme", indexName)
		now, _ := os.ReadFile(file)
		w.must(os.WriteFile(file, []byte(`{"index":1,"name":"acme","serial":1,"versions":["1.0.0","1.1.0"]}`), 0o644))
		defer os.WriteFile(file, now, 0o644)
		w.refused(w.place("acme"), pluginapi.CodePluginUntrusted, "is older than the one seen before (serial 1, was 2)", "--allow-downgrade")
		w.install("acme", func(r *Request) { r.AllowDowngrade = true })
		for text, says := range map[string]string{
			`{"index":2,"name":"acme"}`: "format 2", `{"index":1,"name":"evil"}`: `named "evil"`, `{`: "unexpected end",
		} {
			w.must(os.WriteFile(file, []byte(text), 0o644))
			w.refused(w.place("acme"), pluginapi.CodePlugin, says)
		}
	})
	t.Run("published again with other bytes", func(t *testing.T) {
		dir := author.release("acme", "1.1.0", "acme", func(all map[string]*PackFile) { all["LICENSE"].Data = []byte("other\n") })
		place, _ := author.installer().Resolve(dir, "/")
		_, _, err := author.installer().AddToMirror(ctx, root, place.Source, "", nil)
		oneLine(t, err, pluginapi.CodePluginUntrusted, "has another acme 1.1.0 already")
	})
	t.Run("link out of the tree", func(t *testing.T) {
		w := newWorkshop(t)
		outside := filepath.Join(t.TempDir(), "index.json")
		w.must(os.WriteFile(outside, []byte(`{"index":1,"name":"evil","serial":1,"versions":["1.0.0"]}`), 0o644))
		w.must(os.MkdirAll(filepath.Join(root, "evil"), 0o755))
		w.must(os.Symlink(outside, filepath.Join(root, "evil", indexName)))
		w.opts.Mirrors = []Mirror{{Root: root}}
		w.refused(w.place("evil"), pluginapi.CodePlugin, "mirror "+root)
	})
}

func TestLockOfOtherPlatforms(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.trust("acme", "acme")
	// The fixture's archive for the other platform holds our executable, whose name
	// is the same where there is no ending.
	dir := w.release("acme", "1.0.0", "acme", nil)
	w.install(dir)
	in := w.installer()
	lock, err := ReadLock(in.LockFile())
	w.must(err)
	entry := lock.Get("acme")
	w.must(in.Complete(context.Background(), entry, "plan9/arm64"))
	if entry.H1["plan9_arm64"] == "" || entry.H1["plan9_arm64"] != entry.H1[underscored(Platform())] {
		t.Errorf("h1 %v", entry.H1)
	}
	oneLine(t, in.Complete(context.Background(), entry, "aix/ppc64"), pluginapi.CodePluginNotFound, "no build for aix/ppc64", "there are: ")
	file := filepath.Join(t.TempDir(), lockName)
	w.must(WriteProjectLock(file, lock))
	again, err := ReadLock(file)
	if err != nil || string(again.Bytes()) != string(lock.Bytes()) {
		t.Errorf("read again: %v\n%s", err, again.Bytes())
	}
	if d := in.Check(again); len(d) > 0 {
		t.Errorf("differs: %v", d)
	}
	again.Get("acme").H1[underscored(Platform())] = "h1:other"
	again.Set(Locked{Name: "gone", Version: "1.0.0"})
	again.Set(Locked{Name: "linked", Version: "1.0.0", Link: "/x"})
	if d := in.Check(again); len(d) != 3 {
		t.Errorf("differs: %v", d)
	}
	// An archive that was replaced since.
	delete(entry.H1, "plan9_arm64")
	w.must(os.WriteFile(filepath.Join(dir, ArchiveName("acme", "1.0.0", "plan9/arm64")), packed(t, files("acme", "1.0.0"))[:100], 0o644))
	oneLine(t, in.Complete(context.Background(), entry, "plan9/arm64"), pluginapi.CodePluginUntrusted, "wrong SHA-256 sum")
}

func TestLockFiles(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), lockName)
	for text, says := range map[string]string{
		"lock = 2\n":                           "format 2",
		"x":                                    lockName + ":1",
		"lock = 1\n[[plugim]]\nname = \"x\"\n": lockName + ":2: unknown key plugim",
		"":                                     "has no lock = 1",
		"lock = 1\n[[plugin]]\nname = \"../x\"\nversion = \"1.0.0\"\n":                                             "no name for a plugin",
		"lock = 1\n[[plugin]]\nname = \"x\"\nversion = \"1\"\n":                                                    "no semantic version",
		"lock = 1\n[[plugin]]\nname = \"x\"\nversion = \"1.0.0\"\n[[plugin]]\nname = \"x\"\nversion = \"1.0.0\"\n": "is there twice",
		"lock = 1\n[[plugin]]\nname = \"x\"\nversion = \"1.0.0\"\nh1 = { \"a b\" = \"x\" }\n":                      "no os_arch",
		"lock = 1\n[[plugin]]\nname = \"x\"\nversion = 7\n":                                                        lockName + ":4",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadLock(file)
		oneLine(t, err, pluginapi.CodeConfig, says)
	}
}

func TestTrustFiles(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	key := w.public("acme")
	file := filepath.Join(w.dir, trustName)
	w.must(os.MkdirAll(w.dir, 0o700))
	for text, says := range map[string]string{
		"[[key]]\nid = \"acme\"\nkey = \"RWx\"\nnames = [\"*\"]\n":                        "no minisign public key",
		"[[key]]\nid = \"acme\"\nkey = \"" + key + "\"\n":                                 "which plugins",
		"[[key]]\nid = \"A b\"\nkey = \"" + key + "\"\nnames = [\"*\"]\n":                 "no name for a publisher",
		"[[key]]\nid = \"acme\"\nkey = \"" + key + "\"\nnames = [\"[\"]\n":                "no pattern",
		"[[key]]\nid = \"acme\"\nkeys = \"" + key + "\"\nnames = [\"*\"]\n":               trustName + ":3: unknown key key.keys",
		strings.Repeat("[[key]]\nid = \"acme\"\nkey = \""+key+"\"\nnames = [\"*\"]\n", 2): "is there twice",
		"[[key]]\nid = \"acme\"\nkey = \"" + key + "\"\nnames = \"*\"\n":                  trustName + ":4",
	} {
		w.must(os.WriteFile(file, []byte(text), 0o600))
		_, err := w.installer().Trust()
		oneLine(t, err, pluginapi.CodeConfig, says)
		// Trust that cannot be read is no trust.
		req := w.place(w.release("acme", "1.0.0", "acme", nil))
		if _, err := w.installer().Install(context.Background(), req); err == nil {
			t.Errorf("installed with a trust.toml that says %q", text)
		}
	}
	w.must(os.Remove(file))
	w.trust("acme", "acme")
	w.trust("acme", "acme-*")
	keys, err := w.installer().Trust()
	if err != nil || len(keys) != 1 || len(keys[0].Names) != 2 {
		t.Fatalf("%+v, %v", keys, err)
	}
	oneLine(t, w.installer().AddTrust(Key{ID: "acme", Key: w.public("other"), Names: []string{"x"}}), pluginapi.CodePluginUntrusted, "with another key")
	oneLine(t, w.installer().RemoveTrust("nobody"), pluginapi.CodeValidation, "nobody")
}

// What we sign is signed for minisign's author too, whose code shares none with
// ours, and both find the same wrong. It needs no tool, so it runs everywhere.
func TestMinisignLibrary(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	public, secret, err := GenerateKey("")
	w.must(err)
	key, err := ParsePrivateKey(secret, nil)
	w.must(err)
	theirs, err := jedisct1.DecodePublicKey(string(public))
	w.must(err)
	ours, err := ParsePublicKey(string(public))
	w.must(err)
	sums := []byte(strings.Repeat("0", 64) + "  amux-plugin-acme_1.0.0_linux_amd64.tar.gz\n")
	text := string(Sign(key, "acme", "1.0.0", sums))
	for _, test := range []struct {
		name, signature string
		data            []byte
		good            bool
	}{
		{"as signed", text, sums, true},
		{"other sums", text, append([]byte("1"), sums[1:]...), false},
		{"more sums", text, append(slices.Clone(sums), '\n'), false},
		{"other version", strings.Replace(text, "acme 1.0.0", "acme 1.0.1", 1), sums, false},
		{"another's signature", string(Sign(w.key("other"), "acme", "1.0.0", sums)), sums, false},
	} {
		signature, err := jedisct1.DecodeSignature(test.signature)
		w.must(err)
		if good, err := theirs.Verify(test.data, signature); good != test.good || good != (err == nil) {
			t.Errorf("%s: their verdict is %v, %v", test.name, good, err)
		}
		if got := minisign.Verify(ours, test.data, []byte(test.signature)); got != test.good {
			t.Errorf("%s: our verdict is %v", test.name, got)
		}
		if comment := "trusted comment: " + trustedComment("acme", "1.0.0"); test.good && signature.TrustedComment != comment {
			t.Errorf("their trusted comment is %q, not %q", signature.TrustedComment, comment)
		}
	}
}

// minisign's own tool and ours agree, both ways, also about what is wrong.
func TestMinisignTool(t *testing.T) {
	t.Parallel()
	tool, err := exec.LookPath("minisign")
	if err != nil {
		t.Skip("minisign is not installed: TestMinisignLibrary compares with its author's library alone")
	}
	dir := t.TempDir()
	run := func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, tool, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("-G", "-W", "-p", "key.pub", "-s", "key.sec"); err != nil {
		t.Fatal(out, err)
	}
	public, _ := os.ReadFile(filepath.Join(dir, "key.pub"))
	w := newWorkshop(t)
	w.must(w.installer().AddTrust(Key{ID: "tool", Key: string(public), Names: []string{"acme"}}))

	// The tool signs, we verify: also in its older form.
	for i, mode := range [][]string{nil, {"-l"}} {
		version := fmt.Sprintf("1.%d.0", i)
		release := w.release("acme", version, "", nil)
		args := append([]string{"-S", "-s", "key.sec", "-t", trustedComment("acme", version), "-m", filepath.Join(release, SumsName), "-x", filepath.Join(release, SignatureName)}, mode...)
		if out, err := run(args...); err != nil {
			t.Fatal(out, err)
		}
		if got := w.install(release, func(r *Request) { r.Replace = true }); !strings.HasPrefix(got.Trust, "signed by tool") {
			t.Errorf("got %+v", got)
		}
	}

	// The tool's key signs in our hands, and the tool verifies.
	secret, err := os.ReadFile(filepath.Join(dir, "key.sec"))
	w.must(err)
	key, err := ParsePrivateKey(secret, nil)
	w.must(err)
	release := w.release("acme", "2.0.0", "", nil)
	sums, _ := os.ReadFile(filepath.Join(release, SumsName))
	w.must(os.WriteFile(filepath.Join(release, SignatureName), Sign(key, "acme", "2.0.0", sums), 0o644))
	verify := []string{"-V", "-p", "key.pub", "-m", filepath.Join(release, SumsName), "-x", filepath.Join(release, SignatureName)}
	if out, err := run(verify...); err != nil || !strings.Contains(out, trustedComment("acme", "2.0.0")) {
		t.Errorf("minisign: %v\n%s", err, out)
	}
	w.must(os.WriteFile(filepath.Join(release, SumsName), append(sums, '\n'), 0o644))
	if out, err := run(verify...); err == nil {
		t.Errorf("minisign takes what was changed:\n%s", out)
	}

	// A key of ours, with and without a password, is one for the tool.
	for _, password := range []string{"", "correct horse"} {
		if password != "" && testing.Short() {
			break // takes a GiB and seconds, on purpose
		}
		pub, sec, err := GenerateKey(password)
		w.must(err)
		w.must(os.WriteFile(filepath.Join(dir, "ours.pub"), pub, 0o600))
		w.must(os.WriteFile(filepath.Join(dir, "ours.sec"), sec, 0o600))
		cmd := exec.Command(tool, "-S", "-s", "ours.sec", "-m", "key.pub", "-x", "out.minisig")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(password+"\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("password %q: %v\n%s", password, err, out)
		}
		signature, _ := os.ReadFile(filepath.Join(dir, "out.minisig"))
		trusted, err := ParsePublicKey(string(pub))
		w.must(err)
		if !minisign.Verify(trusted, public, signature) {
			t.Errorf("password %q: what the tool signs with our key is not signed by it", password)
		}
		if password != "" {
			if _, err := ParsePrivateKey(sec, func() (string, error) { return "wrong", nil }); err == nil {
				t.Error("a wrong password opens the key")
			}
		}
	}
}

// A --mirror that is no folder is refused with a hint at what the user may have meant.
func TestCheckMirrorRoot(t *testing.T) {
	t.Parallel()
	for root, says := range map[string]string{
		"http://plugins.example.com": "without TLS",
		"HTTP://plugins.example.com": "without TLS",
		"file:///srv/plugins":        "give the folder itself: /srv/plugins",
		"file:/srv/plugins":          "give the folder itself: /srv/plugins",
		"ftp://plugins.example.com":  "begins with https://",
		"https://":                   "begins with https://",
		"srv/plugins":                "an absolute folder",
	} {
		oneLine(t, CheckMirrorRoot(root), pluginapi.CodeValidation, says)
		if strings.Contains(root, ":") != IsAddress(root) {
			t.Errorf("%s: an address is %v", root, IsAddress(root))
		}
	}
	for _, root := range []string{"/srv/plugins", "https://plugins.example.com/x"} {
		if err := CheckMirrorRoot(root); err != nil {
			t.Errorf("%s: %v", root, err)
		}
	}
}

// A folder that is typed like a plugin's name is told from one.
func TestResolveFolderWithoutDot(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.must(os.MkdirAll(filepath.Join(w.dist, "dist"), 0o755))
	_, err := w.installer().Resolve("dist", w.dist)
	oneLine(t, err, pluginapi.CodeValidation, "type ./dist")
	_, err = w.installer().Resolve("other", w.dist)
	oneLine(t, err, pluginapi.CodePluginNotFound, "no mirror is set")
}

// A mistyped key is named beside what is missing for it.
func TestManifestTypo(t *testing.T) {
	t.Parallel()
	text := strings.Replace(string(files("acme", "1.0.0")[ManifestName].Data), "license =", "licence =", 1)
	_, _, err := ParseManifest(ManifestName, []byte(text))
	oneLine(t, err, pluginapi.CodePluginInvalid, "it needs license; amux-plugin.toml:5: unknown key licence")
	if hint := pluginapi.AsError(err).Hint; !strings.HasPrefix(hint, "correct the manifest") {
		t.Errorf("hint %q", hint) // an author has nothing to reinstall
	}
}
