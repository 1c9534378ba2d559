package app

import (
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// Prompts reads prompts from stdin.
type Prompts struct {
	io    *iostreams.IO
	print *Printer
}

// Read reads a prompt from stdin, byte for byte. asked says that the user gave - as the
// prompt.
func (p *Prompts) Read(asked bool) (string, error) {
	const way = `give it as an argument, amux run AGENT "…", or on stdin`
	if p.io.InTTY && !asked {
		return "", Usagef("no prompt").WithHint(way)
	}
	data, err := p.stdin(host.MaxPrompt)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(string(data)) == "" {
		return "", Usagef("no prompt: stdin is empty").WithHint(way)
	}
	return string(data), nil
}

// stdin reads stdin to its end, at most limit bytes.
func (p *Prompts) stdin(limit int64) ([]byte, error) {
	data, err := foreign.ReadStream(p.io.In, limit)
	if errors.Is(err, foreign.ErrTooLarge) {
		return nil, Usagef("stdin is longer than a prompt may be (%d MiB)", host.MaxPrompt>>20).
			WithHint("put the long text into a file and name the file in the prompt")
	}
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeInternal, "read the prompt from stdin: %w", err)
	}
	return data, nil
}

// PipedWait is how long a pipe may stay without a first byte. A program that starts
// amux often leaves an idle pipe open for as long as it lives.
const PipedWait = 3 * time.Second

// WithPiped appends what is piped into amux to a prompt that was given as an argument.
// quiet leaves out the note about it.
func (p *Prompts) WithPiped(prompt string, quiet bool) (string, error) {
	if !p.io.InPiped {
		return prompt, nil
	}
	note := p.print.Notef
	if quiet {
		note = func(string, ...any) {}
	}
	if p.io.WaitIn != nil && !p.io.WaitIn(PipedWait) {
		note("no data on stdin for %v: sending the prompt alone (with - as the prompt amux waits; with < /dev/null it does not)", PipedWait)
		return prompt, nil
	}
	data, err := p.stdin(max(0, int64(host.MaxPrompt-len(prompt)-len("\n\n"))))
	if err != nil || len(data) == 0 {
		return prompt, err
	}
	note("adding %s of stdin to the prompt", render.Plural(len(data), "byte"))
	return prompt + "\n\n" + string(data), nil
}

// CheckPrompt refuses a prompt that is not text.
func CheckPrompt(prompt string) error {
	if !utf8.ValidString(prompt) {
		return Usagef("the prompt is not valid UTF-8").WithHint("convert it, for example: iconv -f latin1 -t utf-8")
	}
	return nil
}
