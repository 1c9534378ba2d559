package render

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/pluginapi"
)

// shown is Markdown as it is shown, with the styles by name.
func shown(text string, width int) string {
	m := markdown{width: width}
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString(m.line(line))
	}
	b.WriteString(m.end())
	return strings.NewReplacer(bold, "<b>", italic, "<i>", underline, "<u>", strike, "<s>", cyan, "<c>", dim, "<d>", reset, "</>").Replace(b.String())
}

func TestMarkdown(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"text", "as it is", "as it is"},
		{"headings", "# One\n## Two ##\n#no", "<b><u>One</>\n<b>Two</>\n#no"},
		{"emphasis", "**bold** *it* __b__ _i_ ~~no~~ ***both***", "<b>bold</> <i>it</> <b>b</> <i>i</> <s>no</> <b><i>both</>"},
		{"nested emphasis", "**a *b* c**", "<b>a <i>b</><b> c</>"},
		{"no emphasis", "snake_case_name 2 * 3 * 4 ** a ~/x ~/y **open", "snake_case_name 2 * 3 * 4 ** a ~/x ~/y **open"},
		{"escapes", `\*a\* \_b\_ C:\dir`, `*a* _b_ C:\dir`},
		{"code", "`a*b*` and ``x ` y`` and `open", "<c>a*b*</> and <c>x ` y</> and `open"},
		{"code in emphasis", "**see `a**b` there**", "<b>see <c>a**b</><b> there</>"},
		{"links", "[the *docs*](https://x.y/z) [https://a](https://a) [no] (x) a[0](i)", "<u>the <i>docs</><u></> (https://x.y/z) <u>https://a</> [no] (x) a<u>0</> (i)"},
		{"lists", "- a\n  * b\n+ c\n1. d\n- [ ] e\n- [x] f\n-g", "• a\n  • b\n• c\n1. d\n☐ e\n☑ f\n-g"},
		{"quotes", "> a **b**\n>> c", "<d>│ </>a <b>b</>\n<d>│ </><d>│ </>c"},
		{"rule", "---\n* * *\n--", "<d>" + strings.Repeat("─", 40) + "</>\n<d>" + strings.Repeat("─", 40) + "</>\n--"},
		{"block of code", "```go\nif **x** {\n\t| a |\n}\n```\n*b*", "  <c>if **x** {</>\n  <c>\t| a |</>\n  <c>}</>\n<i>b</>"},
		{"a fence in a longer one", "````\n```\n````\nx", "  <c>```</>\nx"},
		{"code on one line is no fence", "```x``` y", "<c>x</> y"},
		{"table", "| a | **b** |\n|---|:-:|\n| 日本 | x \\| y |\nend", "<b>a</>     <b><b>b</><b></>\n<d>───────────</>\n日本  x | y\nend"},
		{"table that is too wide", "| a | b |\n|---|---|\n| " + strings.Repeat("x", 90) + " | y |", "| <b>a</> | <b>b</> |\n| " + strings.Repeat("x", 90) + " | y |"},
		{"no table", "| a |\n| b |", "| a |\n| b |"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want+"\n", shown(test.text, 80)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Markdown that is made to be slow is not.
func TestHostileMarkdown(t *testing.T) {
	for _, piece := range []string{"*a", "_a ", "**a*", "`", "[a](", "[", "~~a", "> ", "\\", "| ", "#", "*_"} {
		text := strings.Repeat(piece, mostInline/len(piece))
		_ = shown(text, 80)
		_ = shown(strings.Repeat(text, 100), 80)
	}
	runs := ""
	for n := 1; len(runs)+n < mostInline-1; n++ {
		runs += "*" + strings.Repeat("`", n) + "a"
	}
	for range 100 {
		_ = shown(runs, 80)
	}
	if got := shown(strings.Repeat("| a |\n", 3*mostRows), 80); strings.Count(got, "a") != 3*mostRows {
		t.Error("rows are missing")
	}
}

// FuzzMarkdown: all words come through, and nothing but our own styles.
func FuzzMarkdown(f *testing.F) {
	f.Add("# a\n- b **c** `d`\n| e |\n```\nf")
	f.Fuzz(func(t *testing.T, text string) {
		text = String(text[:min(len(text), 2<<10)])
		got := shown(text, 20)
		if strings.Contains(got, "\x1b") {
			t.Fatalf("%q has escapes", got)
		}
		for _, r := range text {
			if r >= 'a' && r <= 'z' && strings.Count(got, string(r)) < 1 && !strings.Contains(text, "```") && !strings.Contains(text, "~~~") {
				t.Fatalf("%q is missing in %q", r, got)
			}
		}
	})
}

// line is an input line that keeps what is shown in it.
type line struct{ preview string }

func (l *line) Question(string)     {}
func (l *line) Preview(text string) { l.preview = text }

// What is shown does not depend on how the text is cut; a tool shows what came before it.
func TestMarkdownAsItComes(t *testing.T) {
	const text = "# Title\n\n- **one**\n- `two`\n\n| a | b |\n|---|---|\n| 1 | 2 |\nlast *line*"
	want := ""
	for size := len(text); size > 0; size-- {
		var out strings.Builder
		l := &line{}
		r := New(Options{Out: &out, Err: &out, Color: true, Live: true, Shared: true, Terminal: true, Line: l, Markdown: true, Width: 80})
		event := func(kind string, fields map[string]any) {
			fields["type"] = kind
			raw, _ := json.Marshal(fields)
			r.Event(pluginapi.Type(kind), raw)
		}
		event("message_start", map[string]any{})
		for rest := text; rest != ""; {
			piece := rest[:min(size, len(rest))]
			rest = rest[len(piece):]
			event("text_delta", map[string]any{"delta": piece})
		}
		if !strings.HasSuffix(l.preview, "| 1 | 2 |\nlast *line*") { // the table may go on
			t.Fatalf("in pieces of %d: preview %q", size, l.preview)
		}
		event("tool_call_ready", map[string]any{"tool_call_id": "c", "tool_name": "ls", "input": map[string]any{}})
		event("message_stop", map[string]any{"text": text})
		if l.preview != "" {
			t.Errorf("the preview stays: %q", l.preview)
		}
		if want == "" {
			want = out.String()
			if !strings.HasSuffix(want, "last "+italic+"line"+reset+"\n"+cyan+"● ls"+reset) {
				t.Fatalf("shown: %q", want)
			}
		}
		if got := out.String(); got != want {
			t.Fatalf("in pieces of %d:\n%s", size, cmp.Diff(want, got))
		}
	}
}
