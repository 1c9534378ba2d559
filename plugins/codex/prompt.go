package main

import (
	"encoding/json"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/attachment"
)

// textInput is a piece of a prompt that is text.
type textInput struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Elements []any  `json:"text_elements"`
}

func newText(text string) textInput { return textInput{"text", text, []any{}} }

// imageInput is a piece of a prompt that is an image, as a data URL.
type imageInput struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

// attachmentInput turns files into pieces of a prompt: images as they are, text under
// its name.
func attachmentInput(attachments []*pluginapi.Attachment) ([]json.RawMessage, error) {
	files, err := attachment.Read(agentID, attachment.Images, attachments)
	if err != nil {
		return nil, err
	}
	var input []json.RawMessage
	for _, f := range files {
		var piece any = newText(f.Text())
		if f.Image() {
			piece = imageInput{"image", "data:" + f.Type + ";base64," + f.Base64()}
		}
		data, err := json.Marshal(piece)
		if err != nil {
			return nil, err
		}
		input = append(input, data)
	}
	return input, nil
}
