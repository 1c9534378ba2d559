package main

import (
	"encoding/json"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/attachment"
)

// planState is what Plan hands to the conversation.
type planState struct {
	// Salt makes the ids of this run's messages its own: the CLI drops a message
	// whose id its session has seen.
	Salt string `json:"salt"`
	// Blocks are the attachments as content blocks, for the first prompt.
	Blocks []json.RawMessage `json:"blocks,omitempty"`
}

// userLine is the line that carries a prompt to the CLI.
func userLine(uuid string, blocks []json.RawMessage, text []byte) []byte {
	size := len(text) + len(text)/16 + 256
	for _, block := range blocks {
		size += len(block) + 1
	}
	b := make([]byte, 0, size)
	b = append(b, `{"type":"user","message":{"role":"user","content":`...)
	if len(blocks) == 0 {
		b = pluginapi.AppendString(b, string(text))
	} else {
		b = append(b, '[')
		for _, block := range blocks {
			b = append(append(b, block...), ',')
		}
		b = append(b, `{"type":"text","text":`...)
		b = pluginapi.AppendString(b, string(text))
		b = append(b, `}]`...)
	}
	b = append(b, `},"parent_tool_use_id":null,"uuid":`...)
	b = pluginapi.AppendString(b, uuid)
	return append(b, "}\n"...)
}

// attachmentBlocks turns files into content blocks of the API: images and PDFs as they
// are, text under its name.
func attachmentBlocks(attachments []*pluginapi.Attachment) ([]json.RawMessage, error) {
	type source struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	}
	type block struct {
		Type   string  `json:"type"`
		Text   string  `json:"text,omitempty"`
		Source *source `json:"source,omitempty"`
		Title  string  `json:"title,omitempty"`
	}
	files, err := attachment.Read(agentID, attachment.Images|attachment.PDF, attachments)
	if err != nil {
		return nil, err
	}
	var blocks []json.RawMessage
	for _, f := range files {
		b := block{Type: "text", Text: f.Text()}
		switch {
		case f.Image():
			b = block{Type: "image", Source: &source{"base64", f.Type, f.Base64()}}
		case f.Type != "":
			b = block{Type: "document", Title: f.Name, Source: &source{"base64", f.Type, f.Base64()}}
		}
		data, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, data)
	}
	return blocks, nil
}
