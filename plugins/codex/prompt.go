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

// attachmentInput turns files into pieces of a prompt: images as they are, text
// inlined under its name.
func attachmentInput(attachments []*pluginapi.Attachment) ([]json.RawMessage, error) {
	var input []json.RawMessage
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
			return nil, cannot("more than 32 MiB of attachments", "name the files in the prompt; codex can read them itself")
		}
		piece, err := attachmentPiece(name, a)
		if err != nil {
			return nil, err
		}
		input = append(input, piece)
	}
	return input, nil
}

var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

func attachmentPiece(name string, a *pluginapi.Attachment) (json.RawMessage, error) {
	mime := mediaType(a)
	switch {
	case slices.Contains(imageTypes, mime):
		return json.Marshal(imageInput{"image", "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(a.Content)})
	case mime != "application/pdf" && (!strings.HasPrefix(mime, "image/") || mime == "image/svg+xml") && utf8.Valid(a.Content) && bytes.IndexByte(a.Content, 0) < 0:
		var b strings.Builder
		b.WriteString("<file name=" + strconv.Quote(name) + ">\n")
		b.Write(a.Content)
		if !bytes.HasSuffix(a.Content, []byte("\n")) {
			b.WriteByte('\n')
		}
		b.WriteString("</file>")
		return json.Marshal(newText(b.String()))
	}
	if mime == "" {
		mime = "of an unknown kind"
	}
	return nil, cannot("attachment "+strconv.Quote(name)+" ("+mime+")", "it takes PNG, JPEG, GIF and WebP images and UTF-8 text")
}

// mediaType is what the host says, else what the first bytes say.
func mediaType(a *pluginapi.Attachment) string {
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
