package export

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/amux-dev/amux/internal/sys/printable"
)

const (
	// LogName is the log of exporters, in the configuration folder.
	LogName = "telemetry.log"
	// mostLog is the size above which the log is emptied.
	mostLog = 64 << 10
	// mostLines is how much one exporter writes.
	mostLines = 100
	mostLine  = 500
)

// log is where an exporter says what goes wrong: bounded lines, without the values of
// headers. Several exporters append to one file.
type log struct {
	path    string
	secrets *strings.Replacer
	now     func() time.Time

	mu    sync.Mutex
	lines int
}

func newLog(configDir string, env []string) *log {
	return &log{path: filepath.Join(configDir, LogName), secrets: strings.NewReplacer(secrets(env)...), now: time.Now}
}

// secrets are pairs of what a log must not have, and what it has instead.
func secrets(env []string) (pairs []string) {
	for _, variable := range env {
		name, list, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "OTEL_EXPORTER_OTLP_") || !strings.HasSuffix(name, "HEADERS") {
			continue
		}
		for item := range strings.SplitSeq(list, ",") {
			_, value, _ := strings.Cut(item, "=")
			value = strings.TrimSpace(value)
			plain, err := url.PathUnescape(value)
			if err != nil {
				plain = value
			}
			words := append([]string{plain, value}, strings.Fields(plain)...)
			for _, word := range words {
				if len(word) >= 4 {
					pairs = append(pairs, word, "…")
				}
			}
		}
	}
	return pairs
}

func (l *log) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines++; l.lines > mostLines {
		return
	}
	text := printable.Line(l.secrets.Replace(fmt.Sprintf(format, args...)))
	if len(text) > mostLine {
		text = strings.ToValidUTF8(text[:mostLine], "") + "…"
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND | noFollow
	if info, err := os.Lstat(l.path); err == nil && info.Mode().IsRegular() && info.Size() > mostLog {
		flags |= os.O_TRUNC
	} else if err == nil && !info.Mode().IsRegular() {
		return
	}
	file, err := os.OpenFile(l.path, flags, 0o600)
	if err != nil {
		return // there is nobody to tell
	}
	defer file.Close()
	fmt.Fprintf(file, "%s exporter %d: %s\n", l.now().UTC().Format(time.RFC3339), os.Getpid(), text)
}
