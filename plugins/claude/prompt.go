package main

import (
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/amux-dev/amux/pluginapi"
)

// maxAttachments is the most that all attachments of a prompt may have.
const maxAttachments = 32 << 20

// planState is what Plan hands to the conversation.
type planState struct {
	// Salt makes the ids of this run's messages its own: the CLI drops a message
	// whose id its session has seen.
	Salt string `json:"salt"`
	// Blocks are the attachments as content blocks, for the first prompt.
	Blocks []json.RawMessage `json:"blocks,omitempty"`
}

// uuidOf derives a UUID from names, as version 5 does: the same names give the
// same UUID.
func uuidOf(names ...string) string {
	hash := sha1.New()
	for _, name := range names {
		hash.Write([]byte(strconv.Itoa(len(name))))
		hash.Write([]byte{':'})
		hash.Write([]byte(name))
	}
	sum := hash.Sum(nil)[:16]
	sum[6] = sum[6]&0x0f | 0x50
	sum[8] = sum[8]&0x3f | 0x80
	b := make([]byte, 0, 36)
	for i, part := range [][]byte{sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, part)
	}
	return string(b)
}

// userLine is the line by which a prompt reaches the CLI.
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

// attachmentBlocks turns files into content blocks of the API: images and PDFs
// as they are, text inlined under its name.
func attachmentBlocks(attachments []*pluginapi.Attachment) ([]json.RawMessage, error) {
	var blocks []json.RawMessage
	total := 0
	for _, a := range attachments {
		name := a.GetName()
		if name == "" {
			name = filepath.Base(a.GetPath())
		}
		if len(a.GetContent()) == 0 {
			return nil, cannot("attachment "+strconv.Quote(name), "it is empty or larger than 32 MiB")
		}
		if total += len(a.GetContent()); total > maxAttachments {
			return nil, cannot("more than 32 MiB of attachments", "name the files in the prompt; claude can read them itself")
		}
		block, err := attachmentBlock(name, a)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, block)
	}
	return blocks, nil
}

var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

func attachmentBlock(name string, a *pluginapi.Attachment) (json.RawMessage, error) {
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
	mime := mediaType(name, a)
	switch {
	case slices.Contains(imageTypes, mime):
		return json.Marshal(block{Type: "image", Source: &source{"base64", mime, base64.StdEncoding.EncodeToString(a.Content)}})
	case mime == "application/pdf":
		return json.Marshal(block{Type: "document", Title: name, Source: &source{"base64", mime, base64.StdEncoding.EncodeToString(a.Content)}})
	case (!strings.HasPrefix(mime, "image/") || mime == "image/svg+xml") && utf8.Valid(a.Content) && bytes.IndexByte(a.Content, 0) < 0:
		var b strings.Builder
		b.WriteString("<file name=" + strconv.Quote(name) + ">\n")
		b.Write(a.Content)
		if !bytes.HasSuffix(a.Content, []byte("\n")) {
			b.WriteByte('\n')
		}
		b.WriteString("</file>")
		return json.Marshal(block{Type: "text", Text: b.String()})
	}
	if mime == "" {
		mime = "of an unknown kind"
	}
	return nil, cannot("attachment "+strconv.Quote(name)+" ("+mime+")", "it takes PNG, JPEG, GIF and WebP images, PDF and UTF-8 text")
}

// mediaType is what the host says, else what the first bytes and the name say.
func mediaType(name string, a *pluginapi.Attachment) string {
	mime, _, _ := strings.Cut(strings.ToLower(a.GetMimeType()), ";")
	mime = strings.TrimSpace(mime)
	if mime == "image/jpg" {
		mime = "image/jpeg"
	}
	if mime != "" && mime != "application/octet-stream" {
		return mime
	}
	content := a.GetContent()
	switch {
	case bytes.HasPrefix(content, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(content, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(content, []byte("GIF8")):
		return "image/gif"
	case len(content) > 12 && string(content[:4]) == "RIFF" && string(content[8:12]) == "WEBP":
		return "image/webp"
	case bytes.HasPrefix(content, []byte("%PDF-")):
		return "application/pdf"
	}
	return ""
}
