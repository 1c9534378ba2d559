package install

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// Problem is one thing that is not as it was installed.
type Problem struct {
	File string `json:"file,omitempty"` // within the plugin's folder; "" for the whole
	What string `json:"what"`           // "modified", "missing", …
}

func (p Problem) String() string {
	if p.File == "" {
		return p.What
	}
	return p.What + ": " + p.File
}

// inspect rehashes a folder of the store and compares it with its receipt. The
// receipt is nil if it cannot be read.
func inspect(dir string) (*Receipt, []Problem) {
	data, err := readSmall(filepath.Join(dir, receiptName))
	if err != nil {
		return nil, []Problem{{receiptName, "missing"}}
	}
	receipt, err := parseReceipt(receiptName, data)
	if err != nil {
		return nil, []Problem{{receiptName, "modified"}}
	}
	var problems []Problem
	left := maps.Clone(receipt.Files)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, relErr := filepath.Rel(dir, path)
		if relErr != nil || entry.IsDir() {
			return relErr
		}
		name = filepath.ToSlash(name)
		want, known := left[name]
		delete(left, name)
		switch {
		case slices.Contains(reserved, name) && entry.Type().IsRegular():
		case !entry.Type().IsRegular():
			problems = append(problems, Problem{name, "no regular file"})
		case !known:
			problems = append(problems, Problem{name, "extra"})
		default:
			if got, err := hashFile(path); err != nil || got != want {
				problems = append(problems, Problem{name, "modified"})
			}
		}
		return nil
	})
	if err != nil {
		problems = append(problems, Problem{"", "unreadable: " + fault.Plain(err).Error()})
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		problems = append(problems, Problem{name, "missing"})
	}
	return receipt, problems
}

func hashFile(path string) (string, error) {
	f, err := foreign.Open(path, foreign.Rule{NoLink: true})
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Verify rehashes an active plugin, checks its signature again, and compares both
// with the lock. It changes nothing.
func (d *Folder) Verify(entry Locked) (*Receipt, []Problem) {
	if entry.Link != "" {
		data, err := readSmall(filepath.Join(entry.Link, ManifestName))
		if err == nil {
			_, _, err = ParseManifest(ManifestName, data)
		}
		if err != nil {
			return nil, []Problem{{"", fmt.Sprintf("the linked folder %s: %v", entry.Link, err)}}
		}
		return nil, nil
	}
	dir := storePath(d.dir, entry.Name, entry.Version, Platform())
	if _, err := os.Stat(dir); err != nil {
		return nil, []Problem{{"", "it is not in the store"}}
	}
	receipt, problems := inspect(dir)
	if receipt == nil {
		return nil, problems
	}
	add := func(format string, args ...any) {
		problems = append(problems, Problem{"", fmt.Sprintf(format, args...)})
	}
	here := underscored(Platform())
	if receipt.Name != entry.Name || receipt.Version != entry.Version || receipt.Platform != Platform() {
		add("the receipt is that of %s %s for %s", receipt.Name, receipt.Version, receipt.Platform)
	}
	if want := entry.H1[here]; want != receipt.H1 {
		add("%s asks for %s, installed is %s", lockName, ShortKey(want), ShortKey(receipt.H1))
	}
	if want := entry.SHA256[here]; want != receipt.ArchiveSHA256 {
		add("%s asks for the archive %s, installed is %s", lockName, ShortKey(want), ShortKey(receipt.ArchiveSHA256))
	}
	if entry.Signer != "" && entry.Signer != receipt.Signer {
		add("%s and %s name different signers", lockName, receiptName)
	}
	if receipt.Signer != "" && entry.Signer != "" { // else it was accepted by its checksum
		problems = append(problems, d.verifySignature(dir, receipt)...)
	}
	return receipt, problems
}

func (d *Folder) verifySignature(dir string, receipt *Receipt) []Problem {
	one := func(file, what string) []Problem { return []Problem{{file, what}} }
	sumsText, err := readSmall(filepath.Join(dir, SumsName))
	if err != nil {
		return one(SumsName, "missing")
	}
	signature, err := readSmall(filepath.Join(dir, SignatureName))
	if err != nil {
		return one(SignatureName, "missing")
	}
	keys, err := d.Trust()
	if err != nil {
		return one("", err.Error())
	}
	who, err := checkSignature(keys, receipt.Name, receipt.Version, sumsText, signature)
	if unknown, ok := errors.AsType[errUnknownKey](err); ok {
		return one("", "its signer is no longer trusted (key "+unknown.id+")")
	}
	if err != nil {
		return one(SignatureName, strings.TrimPrefix(err.Error(), "plugin "+receipt.Name+" "+receipt.Version+": "))
	}
	sums, err := ParseSums(sumsText)
	switch {
	case who.key != receipt.Signer:
		return one(SignatureName, "signed by another key than was installed")
	case who.name != receipt.SignerName:
		return one(receiptName, fmt.Sprintf("modified, or the key was renamed: it names the signer %.40q, and %s %q", receipt.SignerName, trustName, who.name))
	case err != nil:
		return one(SumsName, "modified")
	case sums[receipt.Archive] != receipt.ArchiveSHA256:
		return one(SumsName, "it does not name the archive that was installed")
	case sums[ManifestName] != "" && sums[ManifestName] != receipt.Files[ManifestName]:
		return one(ManifestName, "not the one that was signed")
	}
	return nil
}

// Installed reads the receipt of a version in the store.
func (d *Folder) Installed(name, version string) (*Receipt, string, error) {
	dir := storePath(d.dir, name, version, Platform())
	data, err := readSmall(filepath.Join(dir, receiptName))
	if err != nil {
		return nil, dir, pluginapi.Errorf(pluginapi.CodePluginNotFound, "plugin %s %s is not installed for %s", name, version, Platform())
	}
	receipt, err := parseReceipt(filepath.Join(dir, receiptName), data)
	return receipt, dir, err
}

// vouch finds out who has signed the release. unknown is the id of a key that is
// not trusted for it. A signature that is wrong is an error.
func (d *Folder) vouch(r *release) (who signed, unknown string, err error) {
	if r.signature == nil {
		return signed{}, "", nil
	}
	keys, err := d.Trust()
	if err != nil {
		return signed{}, "", err
	}
	who, err = checkSignature(keys, r.name, r.version, r.sumsText, r.signature)
	if e, ok := errors.AsType[errUnknownKey](err); ok {
		return signed{}, e.id, nil
	}
	return who, "", err
}

// Difference is one way in which a lock is not what is installed.
type Difference struct {
	Name string `json:"name"`
	What string `json:"what"`
}

// Check compares a lock with the store.
func (d *Folder) Check(lock *Lock) []Difference {
	here := underscored(Platform())
	var differences []Difference
	for _, entry := range lock.Plugins {
		add := func(format string, args ...any) {
			differences = append(differences, Difference{entry.Name, fmt.Sprintf(format, args...)})
		}
		if entry.Link != "" {
			add("is linked to %s, which exists here only", entry.Link)
			continue
		}
		receipt, _, err := d.Installed(entry.Name, entry.Version)
		switch {
		case err != nil:
			add("%s is not installed for %s", entry.Version, Platform())
		case entry.H1[here] != "" && entry.H1[here] != receipt.H1:
			add("%s: locked %s, installed %s", entry.Version, ShortKey(entry.H1[here]), ShortKey(receipt.H1))
		case entry.SHA256[here] != "" && entry.SHA256[here] != receipt.ArchiveSHA256:
			add("%s: locked the archive %s, installed %s", entry.Version, ShortKey(entry.SHA256[here]), ShortKey(receipt.ArchiveSHA256))
		case entry.Signer != "" && entry.Signer != receipt.Signer:
			add("%s: locked as signed by %q, installed as signed by %q", entry.Version, ShortKey(entry.Signer), ShortKey(receipt.Signer))
		case entry.H1[here] == "" && entry.SHA256[here] == "":
			add("%s has no hash for %s", entry.Version, Platform())
		}
	}
	return differences
}
