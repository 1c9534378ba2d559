// Package attachment reads the files that go with a prompt: what each is, whether an
// agent takes it, and its text as a model reads it best.
package attachment

import (
	"bytes"
	"encoding/base64"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

// Kinds are what an agent takes, besides text.
type Kinds uint

const (
	// Images are PNG, JPEG, GIF and WebP, which all models with eyes read.
	Images Kinds = 1 << iota
	PDF
	// Audio is WAV, MP3, FLAC, Ogg and AAC.
	Audio
)

// File is an attachment that its agent takes.
type File struct {
	Name string
	// Type is the media type of an image, a PDF or audio; empty for text.
	Type    string
	Content []byte
}

// Read tells what the attachments are. One that agent does not take is a
// CAPABILITY_ERROR that says what it takes.
func Read(agent string, takes Kinds, attachments []*pluginapi.Attachment) ([]File, error) {
	var files []File
	for _, a := range attachments {
		f := File{Name: a.GetName(), Type: mediaType(a), Content: a.GetContent()}
		if f.Name == "" {
			f.Name = filepath.Base(a.GetPath())
		}
		option := "attachment " + strconv.Quote(f.Name)
		switch {
		case len(f.Content) == 0:
			return nil, sdk.Cannot(agent, option, "it is empty")
		case takes&Images != 0 && f.Image(), takes&PDF != 0 && f.Type == pdf, takes&Audio != 0 && f.Audio():
		case f.isText():
			f.Type = ""
		default:
			if f.Type != "" {
				option += " (" + f.Type + ")"
			}
			return nil, sdk.Cannot(agent, option, "it takes "+takes.String()+"; name other files in the prompt, it may be able to read them itself")
		}
		files = append(files, f)
	}
	return files, nil
}

const pdf = "application/pdf"

var audio = []string{"audio/wav", "audio/mpeg", "audio/flac", "audio/ogg", "audio/aac"}

var images = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// Image reports whether it is one of Images.
func (f File) Image() bool { return slices.Contains(images, f.Type) }

// Audio reports whether it is one of Audio.
func (f File) Audio() bool { return slices.Contains(audio, f.Type) }

// Base64 is the content as APIs carry it.
func (f File) Base64() string { return base64.StdEncoding.EncodeToString(f.Content) }

// Text is the content between tags that say its name, without a line end behind them.
func (f File) Text() string {
	var b strings.Builder
	b.WriteString("<file name=" + strconv.Quote(f.Name) + ">\n")
	b.Write(f.Content)
	if !bytes.HasSuffix(f.Content, []byte("\n")) {
		b.WriteByte('\n')
	}
	b.WriteString("</file>")
	return b.String()
}

func (f File) isText() bool {
	drawn := strings.HasPrefix(f.Type, "image/") && f.Type != "image/svg+xml"
	return !drawn && f.Type != pdf && utf8.Valid(f.Content) && bytes.IndexByte(f.Content, 0) < 0
}

// String is a list in words.
func (k Kinds) String() string {
	var words []string
	for _, kind := range []struct {
		kind Kinds
		word string
	}{{Images, "PNG, JPEG, GIF and WebP images"}, {PDF, "PDF"}, {Audio, "audio"}} {
		if k&kind.kind != 0 {
			words = append(words, kind.word)
		}
	}
	if len(words) == 0 {
		return text
	}
	return strings.Join(words, ", ") + " and " + text
}

const text = "UTF-8 text"

// synonyms of media types that hosts and systems give files.
var synonyms = map[string]string{
	"image/jpg": "image/jpeg", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav", "audio/vnd.wave": "audio/wav",
	"audio/mp3": "audio/mpeg", "audio/x-flac": "audio/flac", "audio/x-aac": "audio/aac",
}

// mediaType is what the host says, else what the first bytes say.
func mediaType(a *pluginapi.Attachment) string {
	mime, _, _ := strings.Cut(strings.ToLower(a.GetMimeType()), ";")
	mime = strings.TrimSpace(mime)
	if usual, ok := synonyms[mime]; ok {
		mime = usual
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
	case len(content) > 12 && string(content[:4]) == "RIFF" && string(content[8:12]) == "WAVE":
		return "audio/wav"
	case bytes.HasPrefix(content, []byte("ID3")):
		return "audio/mpeg"
	case bytes.HasPrefix(content, []byte("fLaC")):
		return "audio/flac"
	case bytes.HasPrefix(content, []byte("OggS")):
		return "audio/ogg"
	case bytes.HasPrefix(content, []byte("%PDF-")):
		return pdf
	}
	return ""
}
