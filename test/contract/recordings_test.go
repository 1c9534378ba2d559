package contract

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/internal/test/tape"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// foreign are recordings of another amux that does not keep the contract: it leaves out
// fields, or is newer. Our adapter hands on what it says.
var foreign = map[string]bool{
	"plugins/others/internal/remote/testdata/made.txtar":       true,
	"plugins/others/internal/remote/testdata/made-types.txtar": true,
}

// TestRecordings validates the events of all recordings in the repository: transcripts of
// adapters, tapes of plugins, and whole runs.
func TestRecordings(t *testing.T) {
	t.Parallel()
	v := newValidator(t)
	seen, files := map[string]int{}, 0
	check := func(file, kind string, err error) {
		seen[kind]++
		if err != nil && !foreign[file] {
			t.Errorf("%s: %s: %v", file, kind, err)
		}
	}
	for _, dir := range []string{"plugins", "sdk", "docs", "pluginapi"} {
		err := filepath.WalkDir(root(dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name := strings.TrimPrefix(filepath.ToSlash(path), "../../")
			switch {
			case filepath.Ext(name) == ".txtar":
				files++
				transcript(t, path, func(kind string, line []byte) { check(name, kind, v.payload("", line)) })
			case strings.HasPrefix(name, "pluginapi/testdata/") && filepath.Ext(name) == ".ndjson":
				files++
				conversation(t, path, func(kind string, data []byte) { check(name, kind, v.payload(kind, data)) })
			case strings.HasPrefix(name, "docs/picture/run/events.jsonl"):
				files++
				whole(t, path, func(kind string, line []byte) { check(name, kind, v.line(line)) })
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	total := 0
	for _, n := range seen {
		total += n
	}
	if files < 500 || total < 5000 || len(seen) < 45 {
		t.Errorf("only %d recordings with %d events of %d types were found", files, total, len(seen))
	}
	t.Logf("%d recordings, %d events of %d types", files, total, len(seen))
}

// each calls f for the events among lines of JSON; outputs of an adapter that are no
// events have no type.
func each(t *testing.T, path string, data []byte, f func(kind string, line []byte)) {
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var event struct{ Type string }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatalf("%s: %v: %s", path, err, lines.Text())
		}
		if event.Type != "" {
			f(event.Type, lines.Bytes())
		}
	}
	if lines.Err() != nil {
		t.Fatalf("%s: %v", path, lines.Err())
	}
}

func whole(t *testing.T, path string, f func(kind string, line []byte)) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	each(t, path, data, f)
}

func transcript(t *testing.T, path string, f func(kind string, line []byte)) {
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range archive.Files {
		if file.Name == "events.ndjson" {
			each(t, path, file.Data, f)
		}
	}
}

// conversation reads a tape of a plugin and hands on the events of its conversation.
func conversation(t *testing.T, path string, f func(kind string, data []byte)) {
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	recorded, err := tape.Read(file)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for _, call := range recorded.Calls {
		if call.Method != "Converse" {
			continue
		}
		var data []byte // of an event in pieces
		for _, said := range call.Of(tape.Plugin) {
			var response pb.ConverseResponse
			if err := proto.Unmarshal(said, &response); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			for _, out := range response.Outputs {
				if out.Kind != pb.OutputKind_OUTPUT_EVENT {
					continue
				}
				if data = append(data, out.Data...); !out.More {
					f(out.Type, data)
					data = nil
				}
			}
		}
	}
}
