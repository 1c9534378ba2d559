package registry

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

const trustName = "trust.toml"

// publisher is a key of trust.toml.
type publisher struct {
	ID    string   `toml:"id"`
	Key   string   `toml:"key"`
	Names []string `toml:"names"`
}

// publishers are the keys that the user trusts now.
func (r *Registry) publishers() ([]publisher, error) {
	path := filepath.Join(r.opts.PluginDir, trustName)
	f, err := r.read.open(path, foreign.Rule{Limit: maxSmall, Private: true})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s: %w", path, fault.Plain(err))
	}
	return parsed(f, func(data []byte) ([]publisher, error) { return parseTrust(path, data) })
}

func parseTrust(path string, data []byte) ([]publisher, error) {
	var trust struct {
		Keys []publisher `toml:"key"`
	}
	if err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&trust); err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s", tomlError(path, err)).WithHint("a [[key]] has id, key and names")
	}
	for i, p := range trust.Keys { // the key's line, or minisign's file with its comment
		text := strings.TrimSpace(p.Key)
		trust.Keys[i].Key = strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
	}
	return trust.Keys, nil
}

// signedBy returns who signed a plugin, in trust.toml's words. A key that is not
// trusted for the plugin now is an error: trust that was removed ends what it allowed.
func (r *Registry) signedBy(p Plugin, got receipt) (string, error) {
	keys, err := r.publishers()
	if err != nil {
		return "", err
	}
	for _, k := range keys {
		if k.Key != got.Signer {
			continue
		}
		if slices.ContainsFunc(k.Names, func(glob string) bool {
			ok, _ := path.Match(glob, p.Name)
			return ok
		}) {
			return k.ID, nil
		}
	}
	return "", p.errorf(pluginapi.CodePluginUntrusted, "the key that signed it (%s) is not trusted any more", short(got.Signer)).
		WithHint("trust it: amux plugin trust add PUBLISHER %s --names %s; or accept these files by their checksum: amux plugin install %s --sha256 %s --accept-signer",
			got.Signer, p.Name, reinstallFrom(p.Name, got.Source), got.ArchiveSHA256)
}

// reinstallFrom is what a user types to install from a recorded source again.
func reinstallFrom(name, source string) string {
	kind, rest, _ := strings.Cut(source, ":")
	switch kind {
	case "file":
		return rest
	case "mirror":
		return name + " --mirror " + rest
	}
	return source
}

// byChecksum reports whether the user accepted these files by their checksum: the
// user's lock names their hash and no signer.
func (l *lockFile) byChecksum(name, version, platform, h1 string) bool {
	return l != nil && slices.ContainsFunc(l.Plugins, func(e lockEntry) bool {
		return e.Name == name && e.Version == version && e.Link == "" && e.Signer == "" && e.H1[platform] == h1
	})
}
