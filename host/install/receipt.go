package install

import (
	"encoding/json"
	"path/filepath"
	"time"

	"github.com/amux-dev/amux/pluginapi"
)

// Receipt is receipt.json, written last into a plugin's folder: where it came
// from, who vouched for it, and what its files hash to.
type Receipt struct {
	Receipt       int               `json:"receipt"`
	Name          string            `json:"name"`
	Version       string            `json:"version"`
	Platform      string            `json:"platform"` // os/arch
	Source        string            `json:"source"`
	Archive       string            `json:"archive"`
	ArchiveSHA256 string            `json:"archive_sha256"`
	H1            string            `json:"h1"`
	Executable    string            `json:"executable"`
	Files         map[string]string `json:"files"`       // name → SHA-256
	Signer        string            `json:"signer"`      // public key; empty: nobody has signed it
	SignerName    string            `json:"signer_name"` // who that is, as trust.toml said
	// Unverified: neither a signature nor a checksum vouched for it, and the
	// policy allowed that.
	Unverified bool      `json:"unverified,omitempty"`
	Time       time.Time `json:"time"`
	Amux       string    `json:"amux"`
}

const receiptMax = 1

func parseReceipt(place string, data []byte) (*Receipt, error) {
	r := &Receipt{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s: %w", place, err).WithHint("reinstall the plugin")
	}
	if r.Receipt > receiptMax {
		return nil, pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s is of format %d; this amux knows %d", place, r.Receipt, receiptMax).
			WithHint("upgrade amux, or reinstall the plugin")
	}
	if r.Receipt < 1 || len(r.Files) == 0 || r.Files[r.Executable] == "" || h1(r.Files) != r.H1 {
		return nil, pluginapi.Errorf(pluginapi.CodePluginUntrusted, "%s is not as it was written", place).WithHint("reinstall the plugin")
	}
	return r, nil
}

// TrustWords say how far the plugin is trusted, as registry does.
func (r *Receipt) TrustWords() string {
	switch {
	case r.Signer != "":
		return "signed by " + r.SignerName + " (" + ShortKey(r.Signer) + ")"
	case r.Unverified:
		return "unverified"
	}
	return "checksum pinned"
}

func storePath(dir, name, version, platform string) string {
	return filepath.Join(dir, "store", name, version, underscored(platform))
}
