package attachment_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/attachment"
)

func TestRead(t *testing.T) {
	const all = attachment.Images | attachment.PDF
	tests := []struct {
		name  string
		takes attachment.Kinds
		in    *pluginapi.Attachment
		kind  string // of the file; "text", or a part of the refusal's hint
		text  string
	}{
		{"png by its bytes", all, &pluginapi.Attachment{Path: "/a/b", Content: []byte("\x89PNG\r\n\x1a\n")}, "image/png", ""},
		{"jpeg in another word", all, &pluginapi.Attachment{MimeType: "image/JPG; q=1", Content: []byte("x")}, "image/jpeg", ""},
		{"gif", all, &pluginapi.Attachment{MimeType: "application/octet-stream", Content: []byte("GIF89a")}, "image/gif", ""},
		{"webp", all, &pluginapi.Attachment{Content: []byte("RIFF0000WEBPVP8 ")}, "image/webp", ""},
		{"pdf", all, &pluginapi.Attachment{Content: []byte("%PDF-1.1")}, "application/pdf", ""},
		{"text", 0, &pluginapi.Attachment{Path: "/a/n.txt", Content: []byte("<é>")}, "text", "<file name=\"n.txt\">\n<é>\n</file>"},
		{"a name of its own", all, &pluginapi.Attachment{Name: `"`, Path: "/a", Content: []byte("a\n")}, "text", "<file name=\"\\\"\">\na\n</file>"},
		{"svg", all, &pluginapi.Attachment{Name: "s", MimeType: "image/svg+xml", Content: []byte("<svg/>")}, "text", "<file name=\"s\">\n<svg/>\n</file>"},
		{"no eyes", 0, &pluginapi.Attachment{Content: []byte("\x89PNG\r\n\x1a\n")}, "it takes UTF-8 text;", ""},
		{"audio by its bytes", all | attachment.Audio, &pluginapi.Attachment{Content: []byte("RIFF\x24\x00\x00\x00WAVEfmt ")}, "audio/wav", ""},
		{"audio in another word", attachment.Audio, &pluginapi.Attachment{MimeType: "audio/x-wav", Content: []byte("x")}, "audio/wav", ""},
		{"no audio", all, &pluginapi.Attachment{Content: []byte("fLaC\x00\x80")}, "PDF and UTF-8 text;", ""},
		{"all of it", all | attachment.Audio, &pluginapi.Attachment{Content: []byte{1, 0, 2}}, "images, PDF, audio and UTF-8 text;", ""},
		{"no documents", attachment.Images, &pluginapi.Attachment{Content: []byte("%PDF-1.1")}, "WebP images and UTF-8 text;", ""},
		{"a picture that no model reads", all, &pluginapi.Attachment{MimeType: "image/tiff", Content: []byte("II*")}, "PDF and UTF-8 text;", ""},
		{"bytes", all, &pluginapi.Attachment{Content: []byte{1, 0, 2}}, "it takes", ""},
		{"no UTF-8", all, &pluginapi.Attachment{Content: []byte("caf\xe9")}, "it takes", ""},
		{"empty", all, &pluginapi.Attachment{Name: "e"}, "it is empty", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files, err := attachment.Read("robot", tt.takes, []*pluginapi.Attachment{tt.in})
			if err != nil {
				e, ok := errors.AsType[*pluginapi.Error](err)
				if !ok || e.Code != pluginapi.CodeCapability || !strings.HasPrefix(e.Msg, "robot cannot do attachment ") || !strings.Contains(e.Hint, tt.kind) {
					t.Errorf("%v", err)
				}
				return
			}
			f := files[0]
			if f.Type != tt.kind && (f.Type != "" || tt.kind != "text") {
				t.Errorf("it is %q", f.Type)
			}
			if f.Image() != strings.HasPrefix(tt.kind, "image/") {
				t.Errorf("Image() is %v", f.Image())
			}
			if tt.kind == "text" && f.Text() != tt.text {
				t.Errorf("%q", f.Text())
			}
		})
	}
}
