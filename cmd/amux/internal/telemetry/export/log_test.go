package export

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The log is bounded, and has nothing of headers.
func TestLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := []string{"OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20not-a-real-secret,x=1", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=k=another-fake"}
	for range 40 {
		l := newLog(dir, env)
		l.now = func() time.Time { return time.Unix(0, 0) }
		for range 3 * mostLines {
			l.printf("answered: Bearer not-a-real-secret, Bearer%%20not-a-real-secret, another-fake\n\x1b[31m %s", strings.Repeat("x", 10_000))
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, LogName))
	if err != nil || len(data) == 0 || len(data) > mostLog+2*mostLine {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	for _, secret := range []string{"not-a-real-secret", "another-fake", "\x1b"} {
		if strings.Contains(string(data), secret) {
			t.Errorf("the log has %q", secret)
		}
	}
}
