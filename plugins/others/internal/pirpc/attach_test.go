package pirpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

func TestBrokenImageIsRefused(t *testing.T) {
	var good bytes.Buffer
	if err := png.Encode(&good, image.NewRGBA(image.Rect(0, 0, 4, 4))); err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(good.Bytes())
	damaged[len(damaged)-20] ^= 0xff // in the data, whose checksum is then wrong
	for name, c := range map[string]struct {
		content []byte
		ok      bool
	}{
		"good": {good.Bytes(), true}, "damaged": {damaged, false}, "cut off": {good.Bytes()[:40], false},
		"no image": {[]byte("text"), false},
	} {
		plan := &pluginapi.Plan{}
		o := &pluginapi.RunOptions{Attachments: []*pluginapi.Attachment{{Name: "a.png", MimeType: "image/png", Content: c.content}}}
		err := Attach("pi", o, plan)
		if c.ok != (err == nil) || err != nil && !errors.Is(err, pluginapi.CodeCapability) {
			t.Errorf("%s: %v", name, err)
		}
		var s state
		if c.ok && (json.Unmarshal(plan.State, &s) != nil || len(s.Images) != 1) {
			t.Errorf("%s: state %s", name, plan.State)
		}
	}
}
