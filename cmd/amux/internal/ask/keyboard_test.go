package ask

import (
	"io"
	"testing"
	"testing/synctest"

	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
)

// A line that was begun before the question answers nothing, also where Ctrl-D has handed
// over its first part.
func TestLineBegunBeforeTheQuestion(t *testing.T) {
	const question = "?" // in place of bytes: one is shown
	for _, test := range []struct {
		name  string
		typed []string
		early []bool
	}{
		{"after it", []string{question, "y\n"}, []bool{false}},
		{"before it", []string{"y\n", question, "n\n"}, []bool{true, false}},
		{"half before", []string{"y", question, "\n", "n\n"}, []bool{true, false}},
		{"half of the next before", []string{question, "y\ny", question, "\n", "n\n"}, []bool{true, true, false}},
		{"half after it", []string{question, "y", "es\n"}, []bool{false}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, typist := io.Pipe()
				k := NewKeyboard(&iostreams.IO{In: in, DiscardTyped: func() {}}, func() { t.Error("a long line") })
				var lines []Line
				done := make(chan bool)
				go func() {
					for line := range k.Lines {
						lines = append(lines, line)
					}
					close(done)
				}()
				for _, typed := range test.typed {
					synctest.Wait()
					if typed == question {
						k.Shown()
					} else if _, err := io.WriteString(typist, typed); err != nil {
						t.Fatal(err)
					}
				}
				typist.Close()
				<-done
				if len(lines) != len(test.early) {
					t.Fatalf("got %v", lines)
				}
				for i, line := range lines {
					if k.Early(line) != test.early[i] {
						t.Errorf("line %d, %q: early is %v", i, line.Text, !test.early[i])
					}
				}
			})
		})
	}
}
