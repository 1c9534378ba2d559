package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// Options say where plugins are kept.
type Options struct {
	Dir string // <config>/plugins
	// BundledDir has a folder for each plugin that came with amux. Their names and
	// agents are not given to others without the user's word.
	BundledDir string
	Version    string // of amux
	Mirrors    []Mirror
	// HTTP is the client for downloads; nil: one that speaks HTTPS only.
	HTTP *http.Client
	// GitHubAPI is the address of the releases API; empty: GitHub's.
	GitHubAPI   string
	GitHubToken string // never stored, sent to the API only
	// Supervision is for a plugin that is asked what it is: nothing of it survives that.
	Supervision Supervision
	// Gone is called with the hash of each executable that leaves the store; nil: nobody
	// wants to know.
	Gone func(sha256 string)
	// Fault is called at every step of a change, for tests that end it there.
	Fault func(step string) error
}

// Installer changes the folder of plugins.
type Installer struct {
	opts Options
	*Folder
	*Sources
}

// New returns an Installer. It touches no file.
func New(opts Options) *Installer {
	if opts.HTTP == nil {
		opts.HTTP = NewClient()
	}
	if opts.GitHubAPI == "" {
		opts.GitHubAPI = "https://api.github.com"
	}
	opts.GitHubAPI = strings.TrimSuffix(opts.GitHubAPI, "/")
	return &Installer{
		opts:    opts,
		Folder:  &Folder{dir: opts.Dir, step: opts.Fault, supervision: opts.Supervision},
		Sources: &Sources{version: opts.Version, mirrors: opts.Mirrors, client: opts.HTTP, api: opts.GitHubAPI, token: opts.GitHubToken},
	}
}

// Platform is the one that this process runs on.
func Platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// removeAll removes a folder whose files may be read-only. What stays is swept by
// the next writer.
func removeAll(dir string) { _ = os.RemoveAll(dir) }

// Require is what must vouch for a plugin that is installed.
type Require string

const (
	// RequireDefault wants a signature or a checksum, and asks where somebody can answer.
	RequireDefault Require = ""
	// RequireSignature wants a signature by a trusted key.
	RequireSignature Require = "signature"
	// RequireChecksum wants a signature or a checksum, and asks nobody.
	RequireChecksum Require = "checksum"
	// RequireNone takes what comes.
	RequireNone Require = "none"
)

// Request says what to install and how much may change.
type Request struct {
	Place
	Name string // that it must have; "" if the source may tell
	Pin  bool   // no upgrades
	Require
	Replace        bool // the same name from another source, or that of a bundled plugin
	Develop        bool // link a folder in the place of the same plugin from elsewhere
	AllowDowngrade bool // an older version, an older index of a mirror
	AcceptSigner   bool // another signer than before, or none
	NoExec         bool // do not compare what the plugin says of itself
	DryRun         bool
	// TakeOver are agents of other plugins that this one serves from now on.
	TakeOver []string
	// AskTakeOver is asked whether it may serve one more; nil: nobody is there.
	AskTakeOver func(TakeOver) bool
	// Ask is asked whether to install what nothing vouches for; nil: nobody is there.
	Ask func(Question) bool
}

// Question is what a person must look at before they vouch for a plugin.
type Question struct {
	Name, Version, Source string
	SHA256                string // of the archive
	Signer                string // id of the unknown key; "" if nobody has signed it
}

// Result is what was installed.
type Result struct {
	Name      string   `json:"name"`
	Version   string   `json:"version"`
	Previous  string   `json:"previous,omitempty"` // version that was active
	Source    string   `json:"source"`
	Trust     string   `json:"trust"`
	Dir       string   `json:"dir"`
	SHA256    string   `json:"sha256,omitempty"` // of the archive
	Unchanged bool     `json:"unchanged"`
	Warnings  []string `json:"warnings,omitempty"`
}

// Install installs a plugin, or links a folder. On an error nothing has changed.
func (in *Installer) Install(ctx context.Context, req Request) (*Result, error) {
	unlock, err := in.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if req.Link != "" {
		return in.link(req)
	}
	return in.install(ctx, req)
}

func (in *Installer) install(ctx context.Context, req Request) (*Result, error) {
	if err := in.fault("locked"); err != nil {
		return nil, err
	}
	lock, err := ReadLock(in.LockFile())
	if err != nil {
		return nil, err
	}
	r, err := findRelease(ctx, req.Source, req.Name, req.Constraint)
	if err != nil {
		return nil, err
	}
	platform := Platform()
	file := r.archives[platform]
	if file == "" {
		return nil, pluginapi.Errorf(pluginapi.CodePluginNotFound, "plugin %s %s has no build for %s", r.name, r.version, platform).
			WithHint("there are: %s", strings.Join(slices.Sorted(maps.Keys(r.archives)), ", "))
	}
	current := lock.Get(r.name)
	source := req.Source.String()
	if err := in.checkChange(req, current, r, source); err != nil {
		return nil, err
	}
	if err := in.fault("resolved"); err != nil {
		return nil, err
	}

	who, unknown, err := in.vouch(r)
	if err != nil {
		return nil, err
	}
	if current != nil && current.Signer != "" && who.key != current.Signer && !req.AcceptSigner {
		now := "nobody whose key is trusted"
		if who.key != "" {
			now = who.name + " (" + ShortKey(who.key) + ")"
		} else if unknown != "" {
			now = "the unknown key " + unknown
		}
		return nil, pluginapi.Errorf(pluginapi.CodePluginUntrusted, "plugin %s %s is signed by %s; %s was signed by %s", r.name, r.version, now, current.Version, ShortKey(current.Signer)).
			WithHint("if the publisher has told you of the change: --accept-signer")
	}
	if err := in.fault("signature checked"); err != nil {
		return nil, err
	}

	stage := in.path("staging")
	if err := os.MkdirAll(stage, 0o700); err != nil {
		return nil, WriteError(err)
	}
	defer removeAll(stage)
	packed := filepath.Join(stage, "archive")
	f, err := os.OpenFile(packed, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return nil, WriteError(err)
	}
	sum, err := download(ctx, req.Source, r.version, file, f, in.fault)
	if closeErr := f.Close(); err == nil && closeErr != nil {
		err = WriteError(closeErr)
	}
	if err != nil {
		return nil, err
	}
	if err := in.fault("archive whole"); err != nil {
		return nil, err
	}
	for _, want := range []string{r.sums[file], req.SHA256} {
		if want != "" && want != sum {
			return nil, wrongHash(r.name, r.version, file, want, sum)
		}
	}
	known := underscored(platform)
	if current != nil && current.Version == r.version && current.SHA256[known] != "" && current.SHA256[known] != sum {
		return nil, wrongHash(r.name, r.version, file, current.SHA256[known], sum)
	}
	if err := req.Listed.check(r, who, sum); err != nil {
		return nil, err
	}
	unverified, err := decide(req, r, current, who, unknown, sum)
	if err != nil {
		return nil, err
	}

	tree := filepath.Join(stage, "tree")
	manifest, files, warnings, err := in.unpackRelease(packed, tree, r, file, platform)
	if err != nil {
		return nil, err
	}
	if err := manifest.fits(in.opts.Version); err != nil {
		return nil, err
	}
	if err := in.checkDescription(ctx, stage, tree, manifest, false); err != nil {
		return nil, err
	}
	owners, err := in.claim(req, lock, manifest, who)
	if err != nil {
		return nil, err
	}
	if err := in.fault("manifest checked"); err != nil {
		return nil, err
	}
	if err := in.checkDescription(ctx, stage, tree, manifest, !req.NoExec); err != nil {
		return nil, err
	}
	if err := in.fault("described"); err != nil {
		return nil, err
	}
	receipt := &Receipt{
		Receipt: receiptMax, Name: r.name, Version: r.version, Platform: platform, Source: source,
		Archive: file, ArchiveSHA256: sum, H1: h1(files), Executable: ExecutableName(r.name, platform), Files: files,
		Signer: who.key, SignerName: who.name, Unverified: unverified, Time: time.Now().UTC().Truncate(time.Second), Amux: in.opts.Version,
	}
	result := &Result{
		Name: r.name, Version: r.version, Source: source, Trust: receipt.TrustWords(), SHA256: sum, Warnings: warnings,
		Dir: storePath(in.opts.Dir, r.name, r.version, platform),
	}
	if current != nil {
		result.Previous = current.Version
	}
	if req.DryRun {
		return result, nil
	}
	if err := in.store(tree, receipt, r); err != nil {
		return nil, err
	}
	entry := Locked{
		Name: r.name, Version: r.version, Source: source, Constraint: constraintOf(req), Signer: who.key,
		H1: map[string]string{known: receipt.H1}, SHA256: map[string]string{known: sum},
	}
	for platform, archive := range r.archives {
		if hash := r.sums[archive]; hash != "" {
			entry.SHA256[underscored(platform)] = hash
		}
	}
	if current != nil {
		entry.Previous = current.Previous
		switch {
		case current.Version != r.version && current.Link == "":
			entry.Previous = current.Version
		case current.Version == r.version:
			for platform, hash := range current.H1 { // of other platforms, fetched by amux plugin lock
				if entry.SHA256[platform] == current.SHA256[platform] && entry.H1[platform] == "" {
					entry.H1[platform] = hash
				}
			}
		}
	}
	// Before the lock: until that names it, nothing is taken over.
	if err := in.writeOwners(owners); err != nil {
		return nil, err
	}
	before := string(lock.Bytes())
	lock.Set(entry)
	result.Unchanged = string(lock.Bytes()) == before
	if !result.Unchanged {
		if err := in.writeLock(lock); err != nil {
			return nil, err
		}
	}
	if err := in.rememberSerial(req.Source); err != nil {
		return nil, err
	}
	return result, in.fault("done")
}

// constraintOf is what upgrades are chosen by: one release at a place has none.
func constraintOf(req Request) string {
	if _, ok := req.Source.(single); ok || req.Pin || checkVersion(strings.TrimPrefix(req.Constraint, "v")) == nil {
		return ""
	}
	if req.Constraint == "" {
		return "*"
	}
	return req.Constraint
}

// checkChange refuses what would surprise the user of a plugin that is there.
func (in *Installer) checkChange(req Request, current *Locked, r *release, source string) error {
	if err := in.checkBundledName(req, current, r.name); err != nil {
		return err
	}
	if current != nil && current.Link != "" && !req.Replace {
		return pluginapi.Errorf(pluginapi.CodePluginUntrusted, "plugin %s is linked to %s", r.name, current.Link).
			WithHint("to install another in its place: --replace")
	}
	if current != nil && current.Link == "" && !samePlace(current.Source, source) && !req.Replace {
		return pluginapi.Errorf(pluginapi.CodePluginUntrusted, "plugin %s is installed from %s, not from %s", r.name, current.Source, source).
			WithHint("to take it from there from now on: --replace")
	}
	if current != nil && current.Link == "" && older(r.version, current.Version) && !req.AllowDowngrade {
		return pluginapi.Errorf(pluginapi.CodePluginUntrusted, "plugin %s %s is older than %s, which is installed", r.name, r.version, current.Version).
			WithHint("to go back on purpose: --allow-downgrade")
	}
	return in.checkSerial(req.Source, req.AllowDowngrade)
}

// decide checks against the policy who vouches for a plugin.
func decide(req Request, r *release, current *Locked, who signed, unknown, sum string) (unverified bool, err error) {
	locked := current != nil && current.Version == r.version && current.SHA256[underscored(Platform())] == sum
	refuse := func(format string, args ...any) *pluginapi.Error {
		return pluginapi.Errorf(pluginapi.CodePluginUntrusted, "plugin %s %s %s", r.name, r.version, fmt.Sprintf(format, args...))
	}
	reason, hint := "is not signed", "with a checksum from a place you trust: --sha256 SUM (the archive has "+sum+")"
	if unknown != "" {
		reason = "is signed by the key " + unknown + ", which is not trusted for it"
		hint = "if that is the publisher's key: amux plugin trust add PUBLISHER RW… --names " + r.name
	}
	if req.Listed != nil && unknown != "" {
		hint = req.Listed.hint(r.name)
	}
	switch {
	case who.key != "":
		return false, nil
	case req.Require == RequireSignature:
		if unknown == "" {
			return false, refuse("%s, and signatures are required", reason).WithHint("the setting is: require")
		}
		return false, refuse("%s", reason).WithHint("%s", hint)
	case req.SHA256 != "" || locked:
		return false, nil
	case req.Require == RequireNone:
		return true, nil
	case req.Require == RequireDefault && req.Ask != nil:
		if req.Ask(Question{Name: r.name, Version: r.version, Source: req.Source.String(), SHA256: sum, Signer: unknown}) {
			return false, nil
		}
		return false, refuse("was not accepted").WithHint("nothing was installed")
	}
	return false, refuse("%s", reason).WithHint("%s", hint)
}

// unpackRelease unpacks an archive and compares its manifest with what the release
// says.
func (in *Installer) unpackRelease(packed, tree string, r *release, file, platform string) (*Manifest, map[string]string, []string, error) {
	fail := func(err error) (*Manifest, map[string]string, []string, error) {
		if e, ok := errors.AsType[*pluginapi.Error](err); ok && e.Code == pluginapi.CodePluginInvalid {
			err = &pluginapi.Error{Code: e.Code, Msg: file + ": " + e.Msg, Hint: e.Hint, Err: e.Err}
		}
		return nil, nil, nil, err
	}
	if err := os.Mkdir(tree, 0o700); err != nil {
		return fail(WriteError(err))
	}
	root, err := os.OpenRoot(tree)
	if err != nil {
		return fail(WriteError(err))
	}
	defer root.Close()
	f, err := openPack(packed)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	executable := ExecutableName(r.name, platform)
	var faulted error
	files, err := unpack(f, root, executable, func() {
		if faulted == nil {
			faulted = in.fault("file part")
		}
	})
	if err = errors.Join(faulted, err); err != nil {
		return fail(err)
	}
	if want := r.sums[ManifestName]; want != "" && want != files[ManifestName] {
		return fail(invalid("its %s is not the one that %s names", ManifestName, SumsName))
	}
	data, err := root.ReadFile(ManifestName)
	if err != nil {
		return fail(WriteError(err))
	}
	manifest, warnings, err := ParseManifest(ManifestName, data)
	if err != nil {
		return fail(err)
	}
	if manifest.Name != r.name || manifest.Version != r.version {
		return fail(invalid("its manifest is that of %s %s", manifest.Name, manifest.Version))
	}
	for name := range files {
		mode := fs.FileMode(0o444)
		if name == executable {
			mode = 0o555
		}
		if err := root.Chmod(name, mode); err != nil {
			return fail(WriteError(err))
		}
	}
	return manifest, files, warnings, in.fault("unpacked")
}

// store moves a tree to its place in the store. If the same version lies there
// already, whole and with the same content, it stays.
func (in *Installer) store(tree string, receipt *Receipt, r *release) error {
	final := storePath(in.opts.Dir, receipt.Name, receipt.Version, receipt.Platform)
	if _, err := os.Lstat(final); err == nil {
		old, problems := inspect(final)
		switch {
		case len(problems) > 0:
		case old.H1 == receipt.H1 && (old.Signer == receipt.Signer || receipt.Signer == "") && (!old.Unverified || receipt.Unverified):
			return nil // the same, or better vouched for
		case old.H1 != receipt.H1 || old.Signer != "":
			return pluginapi.Errorf(pluginapi.CodePluginUntrusted, "another %s %s is in the store already, with other files or another signer", receipt.Name, receipt.Version).
				WithHint("a version that was published does not change; to take the new one all the same: amux plugin remove %s --version %s", receipt.Name, receipt.Version)
		}
	}
	for _, file := range []struct {
		name string
		data []byte
	}{{SumsName, r.sumsText}, {SignatureName, r.signature}} {
		if file.data == nil {
			continue
		}
		if err := ReplaceFile(filepath.Join(tree, file.name), file.data); err != nil {
			return err
		}
		if err := os.Chmod(filepath.Join(tree, file.name), 0o444); err != nil {
			return WriteError(err)
		}
	}
	data, err := marshalReceipt(receipt)
	if err != nil {
		return err
	}
	if err := ReplaceFile(filepath.Join(tree, receiptName), data); err != nil {
		return err
	}
	if err := os.Chmod(filepath.Join(tree, receiptName), 0o444); err != nil {
		return WriteError(err)
	}
	if err := in.fault("receipt written"); err != nil {
		return err
	}
	if err := syncTree(tree); err != nil {
		return WriteError(err)
	}
	if err := in.fault("synced"); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o700); err != nil {
		return WriteError(err)
	}
	if err := in.fault("folder made"); err != nil {
		return err
	}
	if _, err := os.Lstat(final); err == nil {
		// What is there is broken, or the same files less well vouched for: the lock
		// does not name it, or its hashes fit what comes.
		if err := exchange(tree, final); err != nil {
			return WriteError(err)
		}
	} else if err := os.Rename(tree, final); err != nil {
		return WriteError(err)
	}
	if err := syncDir(filepath.Dir(final)); err != nil {
		return WriteError(err)
	}
	return in.fault("stored")
}

// link makes a folder under development the active plugin of its name.
func (in *Installer) link(req Request) (*Result, error) {
	file := filepath.Join(req.Link, ManifestName)
	data, err := readSmall(file)
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodePluginNotFound, "%s: %w", file, fault.Plain(err)).WithHint("%s", foreign.Fix(err))
	}
	m, warnings, err := ParseManifest(file, data)
	if err != nil {
		return nil, err
	}
	if err := m.fits(in.opts.Version); err != nil {
		return nil, err
	}
	lock, err := ReadLock(in.LockFile())
	if err != nil {
		return nil, err
	}
	if req.Require == RequireSignature {
		return nil, pluginapi.Errorf(pluginapi.CodePluginUntrusted, "plugin %s in %s is not signed, and signatures are required", m.Name, req.Link).
			WithHint("the setting is: require")
	}
	result := &Result{Name: m.Name, Version: m.Version, Source: "dir:" + req.Link, Trust: "local (dev)", Dir: req.Link, Warnings: warnings}
	if err := in.checkBundledName(req, lock.Get(m.Name), m.Name); err != nil {
		return nil, err
	}
	owners, err := in.claim(req, lock, m, signed{})
	if err != nil {
		return nil, err
	}
	if current := lock.Get(m.Name); current != nil {
		if current.Link != req.Link && !req.Replace && !req.Develop {
			from := current.Source
			return nil, pluginapi.Errorf(pluginapi.CodePluginUntrusted, "plugin %s is installed from %s, not from %s", m.Name, from, req.Link).
				WithHint("to use the folder from now on: --replace")
		}
		result.Previous = current.Version
	}
	if req.DryRun {
		return result, nil
	}
	if err := in.writeOwners(owners); err != nil {
		return nil, err
	}
	before := string(lock.Bytes())
	lock.Set(Locked{Name: m.Name, Version: m.Version, Source: result.Source, Link: req.Link})
	if result.Unchanged = string(lock.Bytes()) == before; result.Unchanged {
		return result, nil
	}
	return result, in.writeLock(lock)
}
