package top

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each event is counted once, however the record grows between two looks.
func TestTally(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.jsonl")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var spent tally
	for _, step := range []struct {
		text string
		want float64
	}{
		{"", 0},
		{`{"type":"cost","cost":{"usd":0.5}}` + "\n", 0.5},
		{`{"type":"text_delta","delta":"{\"type\":\"cost\",\"cost\":{\"usd\":9}}"}` + "\n" + `{"type":"cost","co`, 0.5},
		{`st":{"usd":0.25}}`, 0.5},
		{"\n\n{\n" + `{"type":"cost",` + "\n", 0.75},
		{strings.Repeat("x", mostRead+100), 0.75},
		{"\n", 0.75},
		{`{"type":"cost","cost":{"usd":1}}` + "\n", 1.75},
	} {
		if _, err := file.WriteString(step.text); err != nil {
			t.Fatal(err)
		}
		if got := spent.read(path); got != step.want {
			t.Errorf("after %.60q: %v, want %v", step.text, got, step.want)
		}
	}
	if got := spent.read(path + ".gone"); got != 1.75 {
		t.Errorf("a record that is gone: %v", got)
	}
}
