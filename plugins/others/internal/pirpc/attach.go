package pirpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"image"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/attachment"
)

// state is what a plan hands to the conversation.
type state struct {
	Files  []string  `json:"files,omitempty"`  // attachments as text, before the first prompt
	Images []picture `json:"images,omitempty"` // with the first prompt
}

// picture is one in the words of the protocol.
type picture struct {
	Type     string `json:"type"`
	Data     string `json:"data"`
	MimeType string `json:"mimeType"`
}

// Attach leaves attachments in the plan's state. agent is the name for messages.
func Attach(agent string, o *pluginapi.RunOptions, plan *pluginapi.Plan) error {
	files, err := attachment.Read(agent, attachment.Images, o.Attachments)
	if err != nil || len(files) == 0 {
		return err
	}
	var s state
	for _, f := range files {
		if f.Image() {
			if err := whole(f); err != nil {
				return pluginapi.Errorf(pluginapi.CodeCapability, "%s cannot attach the image %q: %v", agent, f.Name, err).
					WithHint("save it again as PNG or JPEG: %s would leave it out without a word", agent)
			}
			s.Images = append(s.Images, picture{"image", f.Base64(), f.Type})
		} else {
			s.Files = append(s.Files, f.Text()+"\n")
		}
	}
	plan.State, err = json.Marshal(s)
	return err
}

// maxPixels bounds an image that is decoded here.
const maxPixels = 50 << 20

// whole reports why an image cannot be decoded. Pi decodes each to make it small enough.
func whole(f attachment.File) error {
	if f.Type == "image/webp" {
		return nil // not known here; what the CLI leaves out it tells the model, and we the user
	}
	config, _, err := image.DecodeConfig(bytes.NewReader(f.Content))
	switch {
	case err != nil:
	case config.Width <= 0 || config.Height <= 0:
		err = errors.New("it is empty")
	case config.Width > maxPixels/config.Height:
		return nil
	default:
		_, _, err = image.Decode(bytes.NewReader(f.Content))
	}
	return err
}
