package pirpc

import (
	"encoding/json"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/attachment"
)

// state is what a plan hands to the conversation.
type state struct {
	Files  []string `json:"files,omitempty"`  // attachments as text, before the first prompt
	Images []image  `json:"images,omitempty"` // with the first prompt
}

// image is one in the words of the protocol.
type image struct {
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
			s.Images = append(s.Images, image{"image", f.Base64(), f.Type})
		} else {
			s.Files = append(s.Files, f.Text()+"\n")
		}
	}
	plan.State, err = json.Marshal(s)
	return err
}
