package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/amux-dev/amux/host/install"
)

// An index of three plugins in two languages: two publishers, found by name, installed
// once their publisher is trusted, and no step back.
func TestPluginIndex(t *testing.T) {
	d := newDesk(t)
	python := buildWhisper(t, d)
	platform := runtime.GOOS + "/" + runtime.GOARCH
	keys := map[string]string{}
	for _, who := range []string{"acme", "snake", "operator"} {
		d.must("plugin", "sign", "--generate", who, "--no-password")
		text, err := os.ReadFile(filepath.Join(d.root, who+".pub"))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Fields(string(text))
		keys[who] = lines[len(lines)-1]
	}
	d.must("plugin", "index", "new", "idx", "--name", "community")
	listing := install.Listing{Index: 1, Name: "community", Serial: 2, Publishers: []install.Publisher{{ID: "acme", Key: keys["acme"]}, {ID: "snake", Key: keys["snake"]}}}
	for _, p := range []struct{ name, source, publisher string }{
		{"shout", "../../docs/example-plugin", "acme"},
		{"talker", "../../docs/example-conversation", "acme"},
		{"whisper", python, "snake"},
	} {
		source, err := filepath.Abs(p.source)
		if err != nil {
			t.Fatal(err)
		}
		out := "idx/" + p.name
		args := []string{"plugin", "package", source, "--out", out}
		if p.source == python {
			args = append(args, "--binary", platform+"=out/amux-plugin-whisper")
		} else {
			args = append(args, "--platform", platform)
		}
		d.must(args...)
		d.must("plugin", "sign", out, "--key", p.publisher+".key")
		name, version, data, err := install.Release(filepath.Join(d.root, out))
		if err != nil || name != p.name {
			t.Fatalf("%s %v", name, err)
		}
		sums, err := install.ParseSums(data)
		if err != nil {
			t.Fatal(err)
		}
		file := install.ArchiveName(name, version, platform)
		listing.Plugins = append(listing.Plugins, install.Listed{
			Name: name, Summary: "An example", Publisher: p.publisher, Agents: []string{name},
			Versions: []install.ListedVersion{{Version: version, Archives: map[string]install.ListedArchive{
				strings.Replace(platform, "/", "_", 1): {Source: name + "/" + file, SHA256: sums[file]},
			}}},
		})
	}
	publish := func(serial uint64) {
		t.Helper()
		listing.Serial = serial
		data, err := json.Marshal(listing)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d.root, "idx", install.ListingName), data, 0o644); err != nil {
			t.Fatal(err)
		}
		d.must("plugin", "index", "check", "idx")
		d.must("plugin", "index", "sign", "idx", "--key", "operator.key")
	}
	refused := func(want string, args ...string) {
		t.Helper()
		if _, stderr, code := d.run(args...); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("amux %s: exit code %d\n%s", strings.Join(args, " "), code, stderr)
		}
	}
	publish(2)
	refused("nobody can be asked", "plugin", "index", "add", "idx")
	refused("another key", "plugin", "index", "add", "idx", "--key", keys["acme"])
	d.must("plugin", "index", "add", "idx", "--key", "operator.pub")
	if text := d.must("plugin", "search", "example"); strings.Count(text, "\n") != 4 || !strings.Contains(text, "snake      no") {
		t.Errorf("found:\n%s", text)
	}
	refused("amux plugin trust add snake "+keys["snake"]+" --names whisper", "plugin", "install", "whisper")
	d.must("plugin", "trust", "add", "snake", keys["snake"], "--names", "whisper")
	d.must("plugin", "trust", "add", "acme", keys["acme"], "--names", "shout,talker")
	d.must("plugin", "install", "whisper", "shout", "talker")
	if text := d.must("run", "whisper", "LISTED"); text != "listed\n" {
		t.Errorf("it said %q", text)
	}
	if text := d.must("plugin", "list"); strings.Count(text, "signed by") != 3 {
		t.Errorf("installed:\n%s", text)
	}
	publish(1)
	refused("serial 1, was 2", "plugin", "install", "shout")
}
