package install

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"aead.dev/minisign"
	"github.com/pelletier/go-toml/v2"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// Key is a publisher's key that the user trusts.
type Key struct {
	ID    string   `toml:"id" json:"id"`       // what the publisher is called here
	Key   string   `toml:"key" json:"key"`     // minisign's public key, one line
	Names []string `toml:"names" json:"names"` // globs of the plugins that it may sign, and of the agents they may serve
}

// trustFile is trust.toml.
type trustFile struct {
	Keys []Key `toml:"key"`
}

// ReadTrust reads a trust.toml; absent is empty.
func ReadTrust(file string) ([]Key, error) {
	data, err := foreign.Read(file, foreign.Rule{Limit: maxSmall, Private: true})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s: %w", file, fault.Plain(err)).WithHint("%s", foreign.Fix(err))
	}
	var trust trustFile
	if err := toml.NewDecoder(strings.NewReader(string(data))).DisallowUnknownFields().Decode(&trust); err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s", tomlError(file, err)).WithHint("a [[key]] has id, key and names")
	}
	seen := map[string]bool{}
	for i, key := range trust.Keys {
		if err := key.check(); err != nil {
			e := pluginapi.AsError(err)
			return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s: [[key]] %d: %s", file, i+1, e.Msg).WithHint("%s", e.Hint)
		}
		if seen[key.ID] {
			return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s: [[key]] %d: the id %s is there twice", file, i+1, key.ID)
		}
		seen[key.ID] = true
	}
	return trust.Keys, nil
}

func (k Key) check() error {
	if CheckName(k.ID) != nil {
		return pluginapi.Errorf(pluginapi.CodeValidation, "%.40q is no name for a publisher", k.ID).
			WithHint("a name has at most 40 of a-z, 0-9 and single hyphens, and begins with a letter")
	}
	if _, err := ParsePublicKey(k.Key); err != nil {
		return err
	}
	if len(k.Names) == 0 {
		return pluginapi.Errorf(pluginapi.CodeValidation, "%s: it does not say which plugins the key may sign", k.ID).
			WithHint(`for example names = ["acme", "acme-*"]`)
	}
	for _, glob := range k.Names {
		if _, err := path.Match(glob, "x"); err != nil || glob == "" || strings.Contains(glob, "/") {
			return pluginapi.Errorf(pluginapi.CodeValidation, "%.40q is no pattern of plugin names", glob).
				WithHint("for example acme, acme-* or *")
		}
	}
	return nil
}

// ParsePublicKey reads minisign's public key: the line itself, or the file with
// its comment.
func ParsePublicKey(text string) (minisign.PublicKey, error) {
	var key minisign.PublicKey
	line := strings.TrimSpace(text)
	if i := strings.LastIndexByte(line, '\n'); i >= 0 {
		line = strings.TrimSpace(line[i+1:])
	}
	if err := key.UnmarshalText([]byte(line)); err != nil {
		return key, pluginapi.Errorf(pluginapi.CodeValidation, "%.80q is no minisign public key", line).
			WithHint("a public key is the second line of minisign.pub: RW… with 56 characters")
	}
	return key, nil
}

// maySign reports whether a key is trusted for a plugin of that name.
func (k Key) maySign(name string) bool {
	return slices.ContainsFunc(k.Names, func(glob string) bool {
		ok, _ := path.Match(glob, name)
		return ok
	})
}

// AddTrust adds a publisher's key. The same id with another key is refused: a
// key that changes is looked at by a person.
func (d *Folder) AddTrust(key Key) error {
	if err := key.check(); err != nil {
		return err
	}
	public, err := ParsePublicKey(key.Key)
	if err != nil {
		return err
	}
	key.Key = public.String()
	return d.changeTrust(func(keys []Key) ([]Key, error) {
		for i, old := range keys {
			if old.ID != key.ID {
				continue
			}
			if old.Key != key.Key {
				return nil, pluginapi.Errorf(pluginapi.CodePluginUntrusted, "%s is trusted already, with another key (%s)", key.ID, ShortKey(old.Key)).
					WithHint("if the publisher has told you of a new key: amux plugin trust remove %s, then add it again", key.ID)
			}
			keys[i].Names = slices.Compact(slices.Sorted(slices.Values(append(old.Names, key.Names...))))
			return keys, nil
		}
		return append(keys, key), nil
	})
}

// RemoveTrust removes a publisher's key.
func (d *Folder) RemoveTrust(id string) error {
	return d.changeTrust(func(keys []Key) ([]Key, error) {
		i := slices.IndexFunc(keys, func(k Key) bool { return k.ID == id })
		if i < 0 {
			return nil, pluginapi.Errorf(pluginapi.CodeValidation, "no key of %.40q is trusted", id).WithHint("see: amux plugin trust list")
		}
		return slices.Delete(keys, i, i+1), nil
	})
}

// Trust lists the trusted keys.
func (d *Folder) Trust() ([]Key, error) { return ReadTrust(d.path(trustName)) }

func (d *Folder) changeTrust(change func([]Key) ([]Key, error)) error {
	unlock, err := d.lock()
	if err != nil {
		return err
	}
	defer unlock()
	keys, err := d.Trust()
	if err != nil {
		return err
	}
	if keys, err = change(keys); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("# Publishers whose signatures amux accepts, and for which plugins.\n")
	for _, k := range keys {
		names := make([]string, len(k.Names))
		for i, n := range k.Names {
			names[i] = quote(n)
		}
		fmt.Fprintf(&b, "\n[[key]]\nid = %s\nkey = %s\nnames = [%s]\n", quote(k.ID), quote(k.Key), strings.Join(names, ", "))
	}
	return ReplaceFile(filepath.Join(d.dir, trustName), []byte(b.String()))
}

// signed is what a good signature says.
type signed struct {
	key   string   // the public key
	name  string   // the publisher's, as trust.toml has it
	names []string // what that key is trusted for
}

// maySign reports whether the key is trusted for a plugin or agent of that name.
func (s signed) maySign(name string) bool { return Key{Names: s.names}.maySign(name) }

// trustedComment is the one that a signature of a release must carry, so that a
// file that was signed as one plugin or version cannot be given out as another.
func trustedComment(name, version string) string { return "amux-plugin " + name + " " + version }

// errUnknownKey: the signature may be good, but nobody has said that its key is.
type errUnknownKey struct{ id string }

func (e errUnknownKey) Error() string {
	return "it is signed by the key " + e.id + ", which is not trusted"
}

// checkSignature finds the trusted key that has signed sums. A signature by a key
// that is not trusted for this plugin is errUnknownKey; one that is wrong is an
// error of its own, whatever the policy is.
func checkSignature(keys []Key, name, version string, sums, signature []byte) (signed, error) {
	untrusted := func(format string, args ...any) error {
		return pluginapi.Errorf(pluginapi.CodePluginUntrusted, "plugin %s %s: %s", name, version, fmt.Sprintf(format, args...))
	}
	var sig minisign.Signature
	if err := sig.UnmarshalText(signature); err != nil {
		return signed{}, untrusted("%s is no signature of minisign", SignatureName)
	}
	unknown := errUnknownKey{strings.ToUpper(strconv.FormatUint(sig.KeyID, 16))}
	for _, k := range keys {
		public, err := ParsePublicKey(k.Key)
		if err != nil || public.ID() != sig.KeyID || !k.maySign(name) {
			continue
		}
		if !minisign.Verify(public, sums, signature) {
			return signed{}, untrusted("the signature of %s over %s is wrong", k.ID, SumsName)
		}
		if want := trustedComment(name, version); sig.TrustedComment != want {
			return signed{}, untrusted("it is signed as %.80q, not as %q", sig.TrustedComment, want)
		}
		return signed{key: public.String(), name: k.ID, names: k.Names}, nil
	}
	// Also of an unknown key the comment must fit: it shows what was mixed up.
	if want := trustedComment(name, version); sig.TrustedComment != want {
		return signed{}, untrusted("it is signed as %.80q, not as %q", sig.TrustedComment, want)
	}
	return signed{}, unknown
}

// ShortKey is as much of a key or hash as people compare.
func ShortKey(key string) string {
	if len(key) > 15 {
		return key[:12] + "…"
	}
	return key
}

// Sign signs SHA256SUMS of a release.
func Sign(key minisign.PrivateKey, name, version string, sums []byte) []byte {
	return minisign.SignWithComments(key, sums, trustedComment(name, version), "signature of an amux plugin's release")
}
