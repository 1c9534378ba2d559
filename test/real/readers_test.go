package real

import (
	"encoding/base64"
	"strings"

	"github.com/amux-dev/amux/internal/test/fakemodel"
)

// readAnthropic reads a request of the Messages API. Claude Code gives a part of
// its system prompt as messages of the role system.
func readAnthropic(q fakemodel.Request) (asked, error) {
	body, err := q.Anthropic()
	if err != nil {
		return asked{}, err
	}
	a := asked{Model: body.Model, Effort: body.OutputConfig.Effort}
	for _, text := range body.System.Texts() {
		a.System += text + "\n"
	}
	for _, m := range body.Messages {
		for _, b := range m.Content {
			switch {
			case m.Role == "system":
				a.System += b.Text + "\n"
			case b.Type == "text":
				a.Texts = append(a.Texts, b.Text)
			case b.Type == "tool_result":
				a.Texts = append(a.Texts, b.Content.Texts()...)
			case b.Type == "image":
				data, err := base64.StdEncoding.DecodeString(b.Source.Data)
				if err != nil {
					return asked{}, err
				}
				a.Images = append(a.Images, data)
			}
		}
	}
	for _, tool := range body.Tools {
		a.Tools = append(a.Tools, tool.Name)
	}
	return a, nil
}

// readChat reads a request of the chat completions API.
func readChat(q fakemodel.Request) (asked, error) {
	body, err := q.Chat()
	if err != nil {
		return asked{}, err
	}
	a := asked{Model: body.Model, Effort: body.Effort()}
	for _, m := range body.Messages {
		for _, part := range m.Content {
			if _, encoded, ok := strings.Cut(part.ImageURL.URL, ";base64,"); ok {
				data, err := base64.StdEncoding.DecodeString(encoded)
				if err != nil {
					return asked{}, err
				}
				a.Images = append(a.Images, data)
			}
		}
		for _, text := range m.Content.Texts() {
			if m.Role == "system" || m.Role == "developer" {
				a.System += text + "\n"
			} else {
				a.Texts = append(a.Texts, text)
			}
		}
	}
	for _, tool := range body.Tools {
		a.Tools = append(a.Tools, tool.Function.Name)
	}
	return a, nil
}
