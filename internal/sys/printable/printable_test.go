package printable

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSanitizer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, in, want string }{
		{"plain", "hello\n\tworld", "hello\n\tworld"},
		{"colour", "\x1b[1;31mred\x1b[m", "red"},
		{"cursor", "a\x1b[2J\x1b[Hb", "ab"},
		{"private", "\x1b[?1049hx", "x"},
		{"title by BEL", "\x1b]0;evil\x07ok", "ok"},
		{"clipboard by ST", "\x1b]52;c;ZXZpbA==\x1b\\ok", "ok"},
		{"device control", "\x1bPq#0\x1b\\ok", "ok"},
		{"unfinished string ends with the line", "\x1b]0;evil\nok", "\nok"},
		{"escape inside a string", "\x1b]0;a\x1b[31mb", "b"},
		{"two characters", "\x1bcx\x1b(By", "xy"},
		{"C1 as UTF-8", "a\u009b31mb\u009d0;t\u009cc\u0085d", "abcd"},
		{"bell, backspace, CR", "a\ab\bc\rd", "abcd"},
		{"delete", "a\x7fb", "ab"},
		{"bidi", "a\u202eb\u2066c", "abc"},
		{"torn at the end", "a\x1b[31", "a"},
		{"control sequence cut by a line", "a\x1b[31\nb", "a\nb"},
		{"escape twice", "\x1b\x1b[31mx", "x"},
		{"invalid UTF-8", "a\xffb\xc3(", "a\ufffdb\ufffd("},
		{"emoji", "👍🏽 ok 👩\u200d🔬", "👍🏽 ok 👩\u200d🔬"},
		{"joiners", "r\u200dm \u200c-rf \u06a9\u200c\u0647", "rm -rf \u06a9\u200c\u0647"},
		{"without width", "a\u200bb\u2060c\ufeffd", "abcd"},
		{"direction marks", "a\u200eb\u200fc\u061cd", "abcd"},
		{"tags", "a\U000e0041\U000e007fb", "ab"},
		{"line separators", "a\u2028b\u2029c", "abc"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := String(test.in); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			var s Sanitizer
			var got []byte
			for i := range len(test.in) {
				got = s.Append(got, test.in[i:i+1])
			}
			if string(got) != test.want {
				t.Errorf("by bytes: got %q, want %q", got, test.want)
			}
		})
	}
}

func FuzzSanitizer(f *testing.F) {
	f.Add("a\x1b[31mb\x1b]0;t\x07c\xff\xe6\x97", 3)
	f.Add("\xe6a\xe6\x97b", 1)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		whole := String(text)
		for _, r := range whole {
			if isControl(r) || isHidden(r) {
				t.Fatalf("%q is left in %q", r, whole)
			}
		}
		if len(text) == 0 {
			return
		}
		cut = (cut%len(text) + len(text)) % len(text)
		var s Sanitizer
		split := s.Append(s.Append(nil, text[:cut]), text[cut:])
		if string(split) != whole {
			t.Fatalf("cut at %d: %q, whole %q", cut, split, whole)
		}
	})
}

func TestLine(t *testing.T) {
	if got := Line("a\n\tb\x1b[2J\rc"); got != "a  bc" {
		t.Errorf("got %q", got)
	}
}

func FuzzJSON(f *testing.F) {
	f.Add("a\u202eb\u009b31m\U000e0041\x1b\u200d")
	f.Fuzz(func(t *testing.T, text string) {
		data, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var want, got string
		safe := JSON(data)
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(safe, &got); err != nil || got != want {
			t.Fatalf("%s means %q, not %q: %v", safe, got, want, err)
		}
		if String(string(safe)) != string(safe) {
			t.Fatalf("%q would be shortened", safe)
		}
	})
}

func BenchmarkSanitizer(b *testing.B) {
	for name, text := range map[string]string{
		"plain":    strings.Repeat("package/of/some/length  0.123s some more plain text of a line\n", 50),
		"coloured": strings.Repeat("\x1b[32mok\x1b[0m  package/of/some/length  0.123s some more plain text of a line\r\n", 50),
		"short":    "a word or two",
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				String(text)
			}
		})
	}
}
