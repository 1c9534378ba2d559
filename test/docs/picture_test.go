//go:build unix

package docs

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/creack/pty"

	"github.com/amux-dev/amux/host"
)

// README's picture is how amux shows the run recorded in docs/picture/run: Claude Code
// 2.1.329 mends a function with a model that follows a script ([fm:fix=…] of
// internal/test/fakemodel names it). make docs draws it again.
func TestPicture(t *testing.T) {
	record := filepath.Join("..", "..", "docs", "picture", "run")
	text, err := os.ReadFile(filepath.Join(record, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	var meta struct {
		RunID string `json:"run_id"`
		Spec  host.RunSpec
	}
	if err := json.Unmarshal(text, &meta); err != nil {
		t.Fatal(err)
	}
	config := t.TempDir()
	folder := filepath.Join(config, "runs", meta.RunID)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(folder, os.DirFS(record)); err != nil {
		t.Fatal(err)
	}
	shown := onTerminal(t, filepath.Join("..", "..", "bin", "amux"), "--config-dir", config, "logs", meta.RunID)
	_, shown, _ = strings.Cut(shown, "\n") // the prompt, which the command line has
	svg := picture(commandLine(meta.Spec) + "\n" + shown)
	path := filepath.Join("..", "..", "docs", "picture", "run.svg")
	if *update {
		if err := os.WriteFile(path, []byte(svg), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have, _ := os.ReadFile(path); string(have) != svg {
		t.Errorf("docs/picture/run.svg is not how amux shows its run: make docs\n%s", shown)
	}
}

const pictureColumns = 84

// onTerminal is what a command writes on a terminal.
func onTerminal(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = []string{"TERM=xterm-256color", "HOME=" + t.TempDir(), "XDG_RUNTIME_DIR=" + t.TempDir()}
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: pictureColumns})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	out, _ := io.ReadAll(terminal) // ends with EIO on Linux
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return strings.ReplaceAll(string(out), "\r\n", "\n")
}

var script = regexp.MustCompile(` \[fm:[^]]*\]`)

// commandLine is what was typed, without the name of the model's script.
func commandLine(spec host.RunSpec) string {
	line := fmt.Sprintf("\x1b[2m$\x1b[0m amux run %s %q", spec.Agent, script.ReplaceAllString(spec.Prompt, ""))
	for _, rule := range spec.AllowRules {
		if strings.Contains(rule, " ") {
			rule = "'" + rule + "'"
		}
		line += " --allow " + rule
	}
	return line
}

var styles = regexp.MustCompile(`\x1b\[([0-9;]*)m`)

// picture draws text with colours as an SVG.
func picture(text string) string {
	const wide, high, margin = 8.4, 20, 16
	colours := map[int]string{1: "font-weight:bold", 2: "fill:#8b949e", 31: "fill:#ff7b72", 32: "fill:#7ee787", 33: "fill:#e3b341", 36: "fill:#79c0ff"}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	columns := 0
	var body strings.Builder
	for i, line := range lines {
		columns = max(columns, utf8.RuneCountInString(styles.ReplaceAllString(line, "")))
		fmt.Fprintf(&body, `<text x="%d" y="%d" xml:space="preserve">`, margin, margin+high*i+14)
		style, at := "", 0
		piece := func(text string) {
			switch {
			case text == "":
			case style == "":
				body.WriteString(html.EscapeString(text))
			default:
				fmt.Fprintf(&body, `<tspan style="%s">%s</tspan>`, style, html.EscapeString(text))
			}
		}
		for _, m := range styles.FindAllStringSubmatchIndex(line, -1) {
			piece(line[at:m[0]])
			at = m[1]
			number, _ := strconv.Atoi(line[m[2]:m[3]])
			style = colours[number]
		}
		piece(line[at:])
		body.WriteString("</text>\n")
	}
	width, height := int(float64(columns)*wide)+2*margin, len(lines)*high+2*margin
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">
<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14" fill="#e6edf3">
%s</g>
</svg>
`, width, height, width, height, body.String())
}
