//go:build unix

package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

// listing makes an index of releases in w.dist, signed by the publisher index.
func (w *workshop) listing(serial uint64, change func(*Listing), releases ...[3]string) {
	w.t.Helper()
	l := &Listing{Index: 1, Name: "community", Serial: serial, Publishers: []Publisher{}, Plugins: []Listed{}}
	known := map[string]bool{}
	for _, r := range releases {
		name, version, publisher := r[0], r[1], r[2]
		if !known[publisher] {
			known[publisher] = true
			l.Publishers = append(l.Publishers, Publisher{ID: publisher, Key: w.public(publisher)})
		}
		source := name + "/" + version + "/" + ArchiveName(name, version, Platform())
		data, err := os.ReadFile(filepath.Join(w.dist, source))
		w.must(err)
		l.Plugins = append(l.Plugins, Listed{
			Name: name, Summary: "An adapter", Publisher: publisher, Agents: []string{name},
			Versions: []ListedVersion{{version, map[string]ListedArchive{underscored(Platform()): {source, sumOf(data)}}}},
		})
	}
	if change != nil {
		change(l)
	}
	data, err := json.Marshal(l)
	w.must(err)
	w.must(os.WriteFile(filepath.Join(w.dist, ListingName), data, 0o644))
	w.must(WriteListingSignature(w.dist, w.public("index"), SignListing(w.key("index"), l, data)))
}

// installListed installs a plugin by the index.
func (w *workshop) installListed(name string) error {
	in := w.installer()
	place, found, err := in.ResolveListed(context.Background(), name, "")
	if err == nil && !found {
		err = errors.New("it is not listed")
	}
	if err == nil {
		_, err = in.Install(context.Background(), Request{Place: place})
	}
	return err
}

func TestIndexFindsAndDoesNotTrust(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.release("acme", "1.0.0", "acme", nil)
	w.release("other", "2.0.0", "otto", nil)
	w.listing(1, nil, [3]string{"acme", "1.0.0", "acme"}, [3]string{"other", "2.0.0", "otto"})
	if _, _, problems, err := CheckIndex(w.dist); err != nil || len(problems) > 0 {
		t.Fatalf("%v %v", problems, err)
	}
	if _, err := w.installer().AddIndex(context.Background(), w.dist, w.public("index")); err != nil {
		t.Fatal(err)
	}
	err := w.installListed("acme")
	if e := pluginapi.AsError(err); !errors.Is(err, pluginapi.CodePluginUntrusted) || !strings.Contains(e.Hint, "amux plugin trust add acme "+w.public("acme")+" --names acme") {
		t.Fatalf("%v", err)
	}
	w.trust("acme", "acme")
	if err := w.installListed("acme@^1"); err != nil {
		t.Fatal(err)
	}
	if err := w.installListed("none"); err == nil {
		t.Error("a plugin that is not listed was installed")
	}
	if err := w.installListed("../acme"); !errors.Is(err, pluginapi.CodeValidation) {
		t.Errorf("%v", err)
	}
	if err := w.installer().RemoveIndex("community"); err != nil {
		t.Fatal(err)
	}
	if list, err := w.installer().Indexes(); err != nil || len(list) != 0 {
		t.Errorf("%v %v", list, err)
	}
}

func TestIndexRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(w *workshop)
		want   string
	}{
		{"changed list", func(w *workshop) {
			path := filepath.Join(w.dist, ListingName)
			data, err := os.ReadFile(path)
			w.must(err)
			w.must(os.WriteFile(path, []byte(strings.Replace(string(data), "An adapter", "An Adapter", 1)), 0o644))
		}, "signature is wrong"},
		{"other key", func(w *workshop) {
			w.keys["index"] = w.key("mallory")
			w.listing(3, nil, [3]string{"acme", "1.0.0", "acme"})
		}, "another key"},
		{"older serial", func(w *workshop) { w.listing(1, nil, [3]string{"acme", "1.0.0", "acme"}) }, "older than the one seen"},
		{"same serial", func(w *workshop) {
			w.listing(2, func(l *Listing) { l.Plugins[0].Summary = "x" }, [3]string{"acme", "1.0.0", "acme"})
		}, "but not its serial"},
		{"other name", func(w *workshop) {
			w.listing(3, func(l *Listing) { l.Name = "evil" }, [3]string{"acme", "1.0.0", "acme"})
		}, "it is the index evil"},
		{"expired", func(w *workshop) {
			w.listing(3, func(l *Listing) { l.Expires = "2001-01-01" }, [3]string{"acme", "1.0.0", "acme"})
		}, "expired"},
		{"other archive", func(w *workshop) {
			w.release("acme", "1.0.0", "acme", func(all map[string]*PackFile) { all["LICENSE"].Data = []byte("other") })
		}, "wrong SHA-256 sum"},
		{"other publisher", func(w *workshop) {
			w.trust("mallory", "acme")
			w.release("acme", "1.0.0", "mallory", nil)
			w.listing(3, func(l *Listing) { l.Publishers[0].Key = w.public("acme") }, [3]string{"acme", "1.0.0", "acme"})
		}, "is signed by mallory; index community says that its publisher is acme"},
		{"signature of another serial", func(w *workshop) {
			data, err := os.ReadFile(filepath.Join(w.dist, ListingName))
			w.must(err)
			l := &Listing{Name: "community", Serial: 9}
			w.must(WriteListingSignature(w.dist, w.public("index"), SignListing(w.key("index"), l, data)))
		}, "is signed as"},
		{"link out", func(w *workshop) {
			w.must(os.Rename(filepath.Join(w.dist, "acme"), filepath.Join(w.dist, "..", "acme")))
			w.must(os.Symlink("../acme", filepath.Join(w.dist, "acme")))
		}, "link"},
		{"huge list", func(w *workshop) {
			w.must(os.WriteFile(filepath.Join(w.dist, ListingName), make([]byte, maxListing+1), 0o644))
		}, "MiB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkshop(t)
			w.trust("acme", "acme")
			w.release("acme", "1.0.0", "acme", nil)
			w.listing(2, nil, [3]string{"acme", "1.0.0", "acme"})
			if _, err := w.installer().AddIndex(context.Background(), w.dist, w.public("index")); err != nil {
				t.Fatal(err)
			}
			test.change(w)
			if err := w.installListed("acme"); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v", err)
			}
			if lock, err := ReadLock(w.installer().LockFile()); err != nil || len(lock.Names()) != 0 {
				t.Errorf("%v %v", lock.Names(), err)
			}
		})
	}
}

// A newer list is remembered, so that the older one is refused from then on.
func TestIndexRemembersSerial(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.trust("acme", "acme")
	w.release("acme", "1.0.0", "acme", nil)
	one := [3]string{"acme", "1.0.0", "acme"}
	w.listing(1, nil, one)
	if _, err := w.installer().AddIndex(context.Background(), w.dist, w.public("index")); err != nil {
		t.Fatal(err)
	}
	w.listing(5, nil, one)
	if err := w.installListed("acme"); err != nil {
		t.Fatal(err)
	}
	w.listing(4, nil, one)
	if err := w.installListed("acme"); err == nil || !strings.Contains(err.Error(), "serial 4, was 5") {
		t.Errorf("%v", err)
	}
	if _, err := w.installer().AddIndex(context.Background(), w.dist, w.public("index")); err == nil {
		t.Error("to add it again sets it back")
	}
}

func TestIndexOnTheWeb(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.trust("acme", "acme")
	w.release("acme", "1.0.0", "acme", nil)
	w.listing(1, nil, [3]string{"acme", "1.0.0", "acme"})
	server := httptest.NewTLSServer(http.FileServer(http.Dir(w.dist)))
	t.Cleanup(server.Close)
	w.opts.HTTP = server.Client()
	if _, err := w.installer().AddIndex(context.Background(), server.URL, w.public("index")); err != nil {
		t.Fatal(err)
	}
	if err := w.installListed("acme"); err != nil {
		t.Error(err)
	}
	if key, err := w.installer().IndexKey(context.Background(), server.URL); err != nil || key != w.public("index") {
		t.Errorf("%q %v", key, err)
	}
	for _, root := range []string{"http://127.0.0.1:1", server.URL + "/none"} {
		if _, err := w.installer().AddIndex(context.Background(), root, w.public("index")); err == nil {
			t.Errorf("%s was added", root)
		}
	}
}

func TestParseListingRefuses(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	const archive = `{"source":"a/amux-plugin-acme_1.0.0_linux_amd64.tar.gz","sha256":"HASH"}`
	good := strings.NewReplacer("KEY", w.public("acme"), "HASH", strings.Repeat("a", 64)).Replace(fmt.Sprintf(
		`{"index":1,"name":"x","serial":1,"publishers":[{"id":"acme","key":"KEY"}],"plugins":[{"name":"acme","summary":"s","publisher":"acme","agents":["acme"],"versions":[{"version":"1.0.0","archives":{"linux_amd64":%s}}]}]}`, archive))
	if _, err := ParseListing([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, old, new, want string }{
		{"format", `"index":1`, `"index":2`, "format"},
		{"no serial", `"serial":1`, `"serial":0`, "no serial"},
		{"index name", `"name":"x"`, `"name":"../x"`, "name for an index"},
		{"plugin name", `"name":"acme"`, `"name":"../acme"`, "name for a plugin"},
		{"agent", `"agents":["acme"]`, `"agents":["a/b"]`, "name for an agent"},
		{"publisher", `"publisher":"acme"`, `"publisher":"other"`, "not listed"},
		{"key", w.public("acme"), "RWx", "public key"},
		{"path out", `"source":"a/`, `"source":"../a/`, "path below the index"},
		{"absolute path", `"source":"a/`, `"source":"/a/`, "path below the index"},
		{"http", `"source":"a/`, `"source":"http://a/`, "path below the index"},
		{"other plugin's archive", `plugin-acme_1`, `plugin-other_1`, "is not named"},
		{"other platform's archive", `"linux_amd64":`, `"linux_arm64":`, "is not named"},
		{"hash", strings.Repeat("a", 64), "a", "SHA-256 sum"},
		{"unknown field", `"summary"`, `"run":"x","summary"`, "unknown field"},
		{"two documents", `}]}]}`, `}]}]}{}`, "follows its end"},
		{"expiry", `"serial":1`, `"serial":1,"expires":"soon"`, "not a day"},
	} {
		bad := strings.Replace(good, test.old, test.new, 1)
		if bad == good {
			t.Fatalf("%s changes nothing", test.name)
		}
		if _, err := ParseListing([]byte(bad)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// The template is valid, and its check finds what is wrong with archives.
func TestNewIndexAndCheck(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	dir := filepath.Join(t.TempDir(), "community")
	w.must(NewIndex(dir, "community"))
	if _, _, problems, err := CheckIndex(dir); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	if err := NewIndex(dir, "community"); !errors.Is(err, pluginapi.CodeValidation) {
		t.Errorf("%v", err)
	}
	w.release("acme", "1.0.0", "mallory", nil)
	w.listing(1, nil, [3]string{"acme", "1.0.0", "acme"})
	if _, _, problems, err := CheckIndex(w.dist); err != nil || len(problems) != 1 || !strings.Contains(problems[0].Error(), "not trusted") {
		t.Errorf("another key: %v %v", problems, err)
	}
	w.release("acme", "1.0.0", "acme", nil)
	w.listing(1, func(l *Listing) {
		l.Plugins[0].Versions[0].Archives[underscored(Platform())] = ListedArchive{"acme/1.0.0/" + ArchiveName("acme", "1.0.0", Platform()), strings.Repeat("0", 64)}
	}, [3]string{"acme", "1.0.0", "acme"})
	if _, _, problems, err := CheckIndex(w.dist); err != nil || len(problems) != 1 || !strings.Contains(problems[0].Error(), "SHA-256") {
		t.Errorf("another hash: %v %v", problems, err)
	}
}
