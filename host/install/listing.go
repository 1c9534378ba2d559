package install

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"aead.dev/minisign"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/internal/sys/printable"
	"github.com/amux-dev/amux/pluginapi"
)

// Names of the files of a plugin index.
const (
	ListingName          = "plugins.json"
	ListingSignatureName = "plugins.json.minisig"
	ListingKeyName       = "index.pub"
)

const (
	listingMax  = 1 // the format
	maxListing  = 8 << 20
	maxListed   = 4096
	maxVersions = 256
	maxSummary  = 400
)

// Listing is a plugin index: a signed list that says where plugins are and whose they
// are. It vouches for no plugin: whose signatures count is what the user trusts.
type Listing struct {
	Index      int         `json:"index"`
	Name       string      `json:"name"`
	Serial     uint64      `json:"serial"`            // rises with every change
	Expires    string      `json:"expires,omitempty"` // a day, 2027-01-31; after it the list is refused
	Publishers []Publisher `json:"publishers"`
	Plugins    []Listed    `json:"plugins"`
}

// Publisher is whose plugins are listed.
type Publisher struct {
	ID  string `json:"id"`
	Key string `json:"key"` // minisign's public key
	URL string `json:"url,omitempty"`
}

// Listed is one plugin of an index.
type Listed struct {
	Name      string          `json:"name"`
	Summary   string          `json:"summary"`
	Publisher string          `json:"publisher"`
	Agents    []string        `json:"agents"`
	Versions  []ListedVersion `json:"versions"`
}

// ListedVersion is a release of a plugin, by platform ("linux_amd64").
type ListedVersion struct {
	Version  string                   `json:"version"`
	Archives map[string]ListedArchive `json:"archives"`
}

// ListedArchive is where an archive is: an https address, or a path below the index.
type ListedArchive struct {
	Source string `json:"source"`
	SHA256 string `json:"sha256"`
}

// ParseListing reads plugins.json.
func ParseListing(data []byte) (*Listing, error) {
	bad := func(format string, args ...any) (*Listing, error) {
		return nil, pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s: %s", ListingName, fmt.Sprintf(format, args...)).WithHint("report it to the operator of the index")
	}
	var l Listing
	if len(data) > maxListing {
		return bad("it has more than %d MiB", maxListing>>20)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return bad("%s", printable.Line(err.Error()))
	}
	switch {
	case d.More():
		return bad("something follows its end")
	case l.Index != listingMax:
		return bad("its format is %d; this amux reads %d", l.Index, listingMax)
	case CheckName(l.Name) != nil:
		return bad("%.40q is not a name for an index", l.Name)
	case l.Serial == 0:
		return bad("it has no serial")
	case len(l.Publishers) > maxListed || len(l.Plugins) > maxListed:
		return bad("it has more than %d plugins or publishers", maxListed)
	}
	if l.Expires != "" {
		if _, err := time.Parse(time.DateOnly, l.Expires); err != nil {
			return bad("expires: %.40q is not a day such as 2027-01-31", l.Expires)
		}
	}
	publishers := map[string]bool{}
	for _, p := range l.Publishers {
		if err := (Key{ID: p.ID, Key: p.Key, Names: []string{"*"}}).check(); err != nil {
			return bad("publisher %.40q: %s", p.ID, pluginapi.AsError(err).Msg)
		}
		if publishers[p.ID] {
			return bad("publisher %s is there twice", p.ID)
		}
		publishers[p.ID] = true
	}
	plugins := map[string]bool{}
	for i, p := range l.Plugins {
		if err := p.check(publishers); err != nil {
			return bad("plugin %.40q: %v", p.Name, err)
		}
		if plugins[p.Name] {
			return bad("plugin %s is there twice", p.Name)
		}
		plugins[p.Name] = true
		l.Plugins[i].Summary = printable.Line(p.Summary)
	}
	return &l, nil
}

func (p Listed) check(publishers map[string]bool) error {
	switch {
	case CheckName(p.Name) != nil:
		return errors.New("it is not a name for a plugin")
	case !publishers[p.Publisher]:
		return fmt.Errorf("its publisher %.40q is not listed", p.Publisher)
	case len(p.Summary) > maxSummary:
		return fmt.Errorf("its summary has more than %d bytes", maxSummary)
	case len(p.Agents) == 0 || len(p.Agents) > 64:
		return errors.New("it has no agents, or more than 64")
	case len(p.Versions) == 0 || len(p.Versions) > maxVersions:
		return fmt.Errorf("it has no versions, or more than %d", maxVersions)
	}
	for _, agent := range p.Agents {
		if CheckName(agent) != nil {
			return fmt.Errorf("%.40q is not a name for an agent", agent)
		}
	}
	seen := map[string]bool{}
	for _, v := range p.Versions {
		if checkVersion(v.Version) != nil || seen[v.Version] {
			return fmt.Errorf("%.40q is not a semantic version, or is there twice", v.Version)
		}
		seen[v.Version] = true
		if len(v.Archives) == 0 || len(v.Archives) > 64 {
			return fmt.Errorf("version %s has no archives, or more than 64", v.Version)
		}
		for platform, a := range v.Archives {
			platform = strings.Replace(platform, "_", "/", 1)
			if !platformRule.MatchString(platform) || !hashRule.MatchString(a.SHA256) {
				return fmt.Errorf("version %s: %.40q needs an operating system, an architecture and a SHA-256 sum", v.Version, platform)
			}
			name, version, of, ok := ParseArchiveName(path.Base(a.Source))
			if !ok || name != p.Name || version != v.Version || of != platform {
				return fmt.Errorf("version %s: the archive %.120q is not named %s", v.Version, a.Source, ArchiveName(p.Name, v.Version, platform))
			}
			if !strings.HasPrefix(a.Source, "https://") && (!filepath.IsLocal(filepath.FromSlash(a.Source)) || path.Clean(a.Source) != a.Source || strings.ContainsAny(a.Source, `\:?#`)) {
				return fmt.Errorf("version %s: the source %.120q is neither an https address nor a path below the index", v.Version, a.Source)
			}
		}
	}
	return nil
}

// Newest is the newest version of a plugin.
func (p Listed) Newest() string {
	newest := p.Versions[0].Version
	for _, v := range p.Versions {
		if older(newest, v.Version) {
			newest = v.Version
		}
	}
	return newest
}

// Publisher returns the publisher of a plugin.
func (l *Listing) Publisher(p Listed) Publisher {
	i := slices.IndexFunc(l.Publishers, func(one Publisher) bool { return one.ID == p.Publisher })
	return l.Publishers[i]
}

// Find returns a plugin of the list.
func (l *Listing) Find(name string) (Listed, bool) {
	i := slices.IndexFunc(l.Plugins, func(p Listed) bool { return p.Name == name })
	if i < 0 {
		return Listed{}, false
	}
	return l.Plugins[i], true
}

func (l *Listing) comment() string { return fmt.Sprintf("amux-index %s %d", l.Name, l.Serial) }

// SignListing signs plugins.json of an index.
func SignListing(key minisign.PrivateKey, l *Listing, data []byte) []byte {
	return minisign.SignWithComments(key, data, l.comment(), "signature of an index of amux plugins")
}

// WriteListingSignature puts a signature and the key that made it into the folder of an
// index.
func WriteListingSignature(dir, public string, signature []byte) error {
	if err := replacePublic(filepath.Join(dir, ListingSignatureName), signature); err != nil {
		return err
	}
	return replacePublic(filepath.Join(dir, ListingKeyName), []byte(public+"\n"))
}

// Index is a plugin index that the user has added.
type Index struct {
	Name   string `json:"name"`
	Root   string `json:"root"` // folder or https address
	Key    string `json:"key"`
	Serial uint64 `json:"serial"` // the newest that was seen, and the hash of its list
	SHA256 string `json:"sha256"`
}

const indexesName = "indexes.json"

// Indexes are the plugin indexes that the user has added, by name.
func (d *Folder) Indexes() ([]Index, error) {
	file := d.path(indexesName)
	data, err := foreign.Read(file, foreign.Rule{Limit: maxSmall, Private: true})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var list []Index
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "cannot use %s: %w", file, fault.Plain(err)).WithHint("remove the file and add the indexes again")
	}
	return list, nil
}

func (d *Folder) changeIndexes(change func([]Index) ([]Index, error)) error {
	unlock, err := d.lock()
	if err != nil {
		return err
	}
	defer unlock()
	list, err := d.Indexes()
	if err != nil {
		return err
	}
	if list, err = change(list); err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b Index) int { return strings.Compare(a.Name, b.Name) })
	data, err := json.MarshalIndent(list, "", " ")
	if err != nil {
		return err
	}
	return ReplaceFile(d.path(indexesName), append(data, '\n'))
}

// RemoveIndex forgets an index. Plugins that came through it stay.
func (d *Folder) RemoveIndex(name string) error {
	return d.changeIndexes(func(list []Index) ([]Index, error) {
		i := slices.IndexFunc(list, func(x Index) bool { return x.Name == name })
		if i < 0 {
			return nil, pluginapi.Errorf(pluginapi.CodeValidation, "no index %.40q was added", name).WithHint("see: amux plugin index list")
		}
		return slices.Delete(list, i, i+1), nil
	})
}

// FetchIndex reads the list of an index and checks its signature by key. It also returns
// the data of the list.
func (in *Installer) FetchIndex(ctx context.Context, root, key string) (*Listing, []byte, error) {
	refuse := func(format string, args ...any) (*Listing, []byte, error) {
		return nil, nil, pluginapi.Errorf(pluginapi.CodePluginUntrusted, "index %s: %s", withoutQuery(root), fmt.Sprintf(format, args...)).
			WithHint("it is not used; report it to the operator of the index")
	}
	public, err := ParsePublicKey(key)
	if err != nil {
		return nil, nil, err
	}
	data, err := in.indexFile(ctx, root, ListingName, maxListing)
	if err != nil {
		return nil, nil, err
	}
	signature, err := in.indexFile(ctx, root, ListingSignatureName, maxSums)
	if err != nil {
		return nil, nil, err
	}
	var sig minisign.Signature
	if err := sig.UnmarshalText(signature); err != nil {
		return refuse("%s is not a signature of minisign", ListingSignatureName)
	}
	if sig.KeyID != public.ID() {
		return refuse("it is signed by another key than %s", ShortKey(public.String()))
	}
	if !minisign.Verify(public, data, signature) {
		return refuse("its signature is wrong")
	}
	l, err := ParseListing(data)
	if err != nil {
		return nil, nil, err
	}
	if sig.TrustedComment != l.comment() {
		return refuse("it is signed as %.80q, not as %q", sig.TrustedComment, l.comment())
	}
	if l.Expires != "" && time.Now().UTC().Format(time.DateOnly) > l.Expires {
		return refuse("it has expired on %s", l.Expires)
	}
	return l, data, nil
}

// IndexKey is the key that an index says is its own. It is shown to a person; it proves
// nothing.
func (in *Installer) IndexKey(ctx context.Context, root string) (string, error) {
	data, err := in.indexFile(ctx, root, ListingKeyName, 4<<10)
	if err != nil {
		return "", err
	}
	public, err := ParsePublicKey(string(data))
	if err != nil {
		return "", err
	}
	return public.String(), nil
}

// indexFile reads a file of an index, a folder or an https address.
func (in *Installer) indexFile(ctx context.Context, root, name string, limit int64) ([]byte, error) {
	missing := func() ([]byte, error) {
		return nil, pluginapi.Errorf(pluginapi.CodePluginNotFound, "index %s has no %s", withoutQuery(root), name).
			WithHint("an index is made by: amux plugin index new DIR, then amux plugin index sign DIR --key FILE")
	}
	if !IsAddress(root) {
		data, err := foreign.ReadIn(root, name, foreign.Rule{Limit: limit})
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return missing()
		case err != nil:
			return nil, pluginapi.Errorf(pluginapi.CodePlugin, "index %s: %w", root, fault.Plain(err)).WithHint("%s", foreign.Fix(err))
		}
		return data, nil
	}
	body, err := in.get(ctx, strings.TrimSuffix(root, "/")+"/"+name, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return missing()
	}
	if err != nil {
		return nil, err
	}
	defer body.Close()
	data, err := foreign.ReadStream(body, limit)
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodePlugin, "index %s: %s: %w", withoutQuery(root), name, err)
	}
	return data, nil
}

// AddIndex adds an index whose list a key has signed.
func (in *Installer) AddIndex(ctx context.Context, root, key string) (*Listing, error) {
	l, data, err := in.FetchIndex(ctx, root, key)
	if err != nil {
		return nil, err
	}
	public, err := ParsePublicKey(key)
	if err != nil {
		return nil, err
	}
	next := Index{Name: l.Name, Root: root, Key: public.String(), Serial: l.Serial, SHA256: sumOf(data)}
	return l, in.changeIndexes(func(list []Index) ([]Index, error) {
		i := slices.IndexFunc(list, func(x Index) bool { return x.Name == l.Name })
		if i < 0 {
			return append(list, next), nil
		}
		old := list[i]
		if old.Root != root || old.Key != next.Key {
			return nil, pluginapi.Errorf(pluginapi.CodePluginUntrusted, "an index %s was added already, from %s with the key %s", l.Name, old.Root, ShortKey(old.Key)).
				WithHint("if this one shall take its place: amux plugin index remove %s, then add it again", l.Name)
		}
		if err := old.follows(l, data); err != nil {
			return nil, err
		}
		list[i] = next
		return list, nil
	})
}

// follows refuses a list that is older than the one seen before, or another one with the
// same serial: somebody may want to hide what came since.
func (x Index) follows(l *Listing, data []byte) error {
	refuse := func(format string, args ...any) error {
		return pluginapi.Errorf(pluginapi.CodePluginUntrusted, "index %s: %s", x.Name, fmt.Sprintf(format, args...)).
			WithHint("if its operator has set it back: amux plugin index remove %s, then add it again", x.Name)
	}
	switch {
	case l.Name != x.Name:
		return refuse("it now says that it is the index %s", l.Name)
	case l.Serial < x.Serial:
		return refuse("its list is older than the one seen before (serial %d, was %d)", l.Serial, x.Serial)
	case l.Serial == x.Serial && sumOf(data) != x.SHA256:
		return refuse("its list has changed, but not its serial %d", l.Serial)
	}
	return nil
}

// ReadIndex reads the list of an index that was added, and remembers its serial.
func (in *Installer) ReadIndex(ctx context.Context, x Index) (*Listing, error) {
	l, data, err := in.FetchIndex(ctx, x.Root, x.Key)
	if err != nil {
		return nil, err
	}
	if err := x.follows(l, data); err != nil || l.Serial == x.Serial {
		return l, err
	}
	return l, in.changeIndexes(func(list []Index) ([]Index, error) {
		for i := range list {
			if list[i].Name == x.Name && list[i].Serial < l.Serial {
				list[i].Serial, list[i].SHA256 = l.Serial, sumOf(data)
			}
		}
		return list, nil
	})
}

// ResolveListed finds NAME or NAME@VERSION in the indexes that were added, or in the one
// that index names. found is false where no index was added or none lists it.
func (in *Installer) ResolveListed(ctx context.Context, text, index string) (place Place, found bool, err error) {
	name, constraint, _ := strings.Cut(text, "@")
	if err := CheckName(name); err != nil {
		return Place{}, false, err
	}
	all, err := in.Indexes()
	if err != nil {
		return Place{}, false, err
	}
	var listing []string
	for _, x := range all {
		if index != "" && x.Name != index {
			continue
		}
		l, err := in.ReadIndex(ctx, x)
		if err != nil {
			return Place{}, false, err
		}
		p, ok := l.Find(name)
		if !ok {
			continue
		}
		if listing = append(listing, x.Name); len(listing) > 1 {
			continue
		}
		if place, err = in.placeOf(x, l, p, constraint); err != nil {
			return Place{}, false, err
		}
	}
	if len(listing) > 1 {
		return Place{}, false, pluginapi.Errorf(pluginapi.CodeValidation, "several indexes have a plugin %s: %s", name, strings.Join(listing, ", ")).
			WithHint("choose one with --index")
	}
	return place, len(listing) == 1, nil
}

func (in *Installer) placeOf(x Index, l *Listing, p Listed, constraint string) (Place, error) {
	versions := []string{}
	for _, v := range p.Versions {
		versions = append(versions, v.Version)
	}
	version, err := choose(listedSource{x.Name + "/" + p.Name}, versions, constraint)
	if err != nil {
		return Place{}, err
	}
	i := slices.Index(versions, version)
	a, ok := p.Versions[i].Archives[underscored(Platform())]
	if !ok {
		return Place{}, pluginapi.Errorf(pluginapi.CodePluginNotFound, "index %s has no build of plugin %s %s for %s", x.Name, p.Name, version, Platform())
	}
	source := a.Source
	if !strings.HasPrefix(source, "https://") {
		if IsAddress(x.Root) {
			source = strings.TrimSuffix(x.Root, "/") + "/" + source
		} else {
			if err := foreign.CheckIn(x.Root, source); err != nil {
				return Place{}, pluginapi.Errorf(pluginapi.CodePlugin, "index %s: %w", x.Name, fault.Plain(err))
			}
			source = filepath.Join(x.Root, filepath.FromSlash(source))
		}
	}
	place, err := in.Resolve(source, "")
	if err != nil {
		return Place{}, err
	}
	publisher := l.Publisher(p)
	place.Listed = &ListedAs{Index: x.Name, SHA256: a.SHA256, Publisher: publisher.ID, Key: publisher.Key}
	return place, nil
}

// ListedAs is what an index says of an archive. It must hold, and vouches for nothing.
type ListedAs struct {
	Index, SHA256, Publisher, Key string
}

// checkListed compares an archive and who signed it with what an index says.
func (l *ListedAs) check(r *release, who signed, sum string) error {
	switch {
	case l == nil:
		return nil
	case sum != l.SHA256:
		return wrongHash(r.name, r.version, "its archive in index "+l.Index, l.SHA256, sum)
	case who.key != "" && who.key != l.Key:
		return pluginapi.Errorf(pluginapi.CodePluginUntrusted, "plugin %s %s is signed by %s; index %s says that its publisher is %s (%s)",
			r.name, r.version, who.name, l.Index, l.Publisher, ShortKey(l.Key)).WithHint("ask the publisher which key is theirs")
	}
	return nil
}

// hint says how to trust the publisher whom an index names.
func (l *ListedAs) hint(name string) string {
	return fmt.Sprintf("index %s says that it is %s's; if you trust that publisher: amux plugin trust add %s %s --names %s", l.Index, l.Publisher, l.Publisher, l.Key, name)
}

// listedSource stands for an index where versions are chosen.
type listedSource struct{ name string }

var _ Source = listedSource{}

func (s listedSource) String() string                             { return "index " + s.name }
func (s listedSource) Name() string                               { return "" }
func (s listedSource) Versions(context.Context) ([]string, error) { return nil, nil }
func (s listedSource) Open(context.Context, string, string) (io.ReadCloser, error) {
	return nil, fs.ErrNotExist
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// CheckIndex checks the folder of an index as a user's amux would, and the archives that
// lie in it: their hashes, and that their publisher has signed them. It returns what is
// wrong.
func CheckIndex(dir string) (*Listing, []byte, []error, error) {
	data, err := foreign.ReadIn(dir, ListingName, foreign.Rule{Limit: maxListing})
	if err != nil {
		return nil, nil, nil, pluginapi.Errorf(pluginapi.CodePluginNotFound, "cannot read %s: %w", filepath.Join(dir, ListingName), fault.Plain(err)).
			WithHint("make an index: amux plugin index new DIR")
	}
	l, err := ParseListing(data)
	if err != nil {
		return nil, nil, nil, err
	}
	var problems []error
	for _, p := range l.Plugins {
		for _, v := range p.Versions {
			for platform, a := range v.Archives {
				if strings.HasPrefix(a.Source, "https://") {
					continue
				}
				if err := checkListedArchive(dir, l.Publisher(p), p, v.Version, a); err != nil {
					problems = append(problems, fmt.Errorf("plugin %s %s %s: %w", p.Name, v.Version, platform, err))
				}
			}
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return l, data, problems, nil
}

func checkListedArchive(dir string, publisher Publisher, p Listed, version string, a ListedArchive) error {
	data, err := foreign.ReadIn(dir, a.Source, foreign.Rule{Limit: maxArchive})
	if err != nil {
		return fault.Plain(err)
	}
	if got := sumOf(data); got != a.SHA256 {
		return fmt.Errorf("its SHA-256 sum is %s, not %s", got, a.SHA256)
	}
	beside := path.Dir(a.Source)
	sums, err := foreign.ReadIn(dir, path.Join(beside, SumsName), foreign.Rule{Limit: maxSums})
	if err != nil {
		return fault.Plain(err)
	}
	signature, err := foreign.ReadIn(dir, path.Join(beside, SignatureName), foreign.Rule{Limit: maxSums})
	if err != nil {
		return fault.Plain(err)
	}
	if _, err := checkSignature([]Key{{ID: publisher.ID, Key: publisher.Key, Names: []string{"*"}}}, p.Name, version, sums, signature); err != nil {
		return err
	}
	named, err := ParseSums(sums)
	if err != nil {
		return err
	}
	if named[path.Base(a.Source)] != a.SHA256 {
		return fmt.Errorf("%s beside it has another sum", SumsName)
	}
	return nil
}

// NewIndex makes a folder with an empty index and how to fill it.
func NewIndex(dir, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return WriteError(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return pluginapi.Errorf(pluginapi.CodeValidation, "%s exists already", dir).WithHint("name a folder that is not there")
		}
		return WriteError(err)
	}
	data, err := json.MarshalIndent(Listing{Index: listingMax, Name: name, Serial: 1, Publishers: []Publisher{}, Plugins: []Listed{}}, "", "  ")
	if err != nil {
		return err
	}
	if err := replacePublic(filepath.Join(dir, ListingName), append(data, '\n')); err != nil {
		return err
	}
	return replacePublic(filepath.Join(dir, "README.md"), []byte(fmt.Sprintf(indexReadme, name, ArchiveName("acme", "1.0.0", "linux/amd64"))))
}

const indexReadme = "# Plugin index %s\n\n" +
	"`plugins.json` lists plugins for amux and whose they are. An entry:\n\n```json\n" + `{
  "publishers": [{"id": "acme", "key": "RW…", "url": "https://acme.example"}],
  "plugins": [{
    "name": "acme", "summary": "Serves the agent acme", "publisher": "acme", "agents": ["acme"],
    "versions": [{"version": "1.0.0", "archives": {
      "linux_amd64": {"source": "acme/1.0.0/%s", "sha256": "…"}
    }}]
  }]
}` + "\n```\n\n" +
	"A `source` is an https address or a path in this folder, with `SHA256SUMS` and `SHA256SUMS.minisig` of the release\n" +
	"beside the archive. Raise `serial` with every change. `expires` (2027-01-31) is optional.\n\n" +
	"```console\n$ amux plugin index check .\n$ amux plugin index sign . --key index.key\n```\n\n" +
	"Publish the folder, and tell your users its key by another way:\n\n" +
	"```console\n$ amux plugin index add https://plugins.example.com --key RW…\n```\n"
