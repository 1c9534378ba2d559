package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/internal/sys/pattern"
	"github.com/amux-dev/amux/pluginapi"
)

// Verified is a plugin whose executable was found to be what it must be.
type Verified struct {
	Plugin Plugin
	Path   string // the copy to start
	SHA256 string
	// Honest says that a process of this executable was seen to be what describe.json says, which is still the
	// same file.
	Honest bool
}

// identity tells whether a file is still the one that was hashed. Who restores
// size and mtime after a change still leaves another ctime.
type identity struct {
	Dev   uint64 `json:"dev"`
	Ino   uint64 `json:"ino"`
	Size  int64  `json:"size"`
	Mtime int64  `json:"mtime_ns"`
	Ctime int64  `json:"ctime_ns"`
}

// racy is how much later than its last change a file must have been hashed for
// its ctime to tell of every later change: clocks of filesystems tick slowly.
const racy = 50 * time.Millisecond

var hashRule = pattern.New(`^[0-9a-f]{64}$`)

// Verify checks the executable of p and returns the copy of it to start. It
// changes nothing if the executable is not what it must be.
func (r *Registry) Verify(p Plugin) (Verified, error) {
	if p.Err != nil {
		return Verified{}, p.Err
	}
	if err := p.checkExecutable(); err != nil {
		return Verified{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()

	known, isKnown := r.receipts().read()[p.Executable]
	if isKnown && !r.opts.AlwaysVerify && (p.SHA256 == "" || p.SHA256 == known.SHA256) {
		copyPath := r.copyPath(known.SHA256, p.Executable)
		if sameFile(p.Executable, known.Source) && sameFile(copyPath, known.Copy) {
			honest := p.describe != (identity{}) && p.describe == known.Describe
			return Verified{Plugin: p, Path: copyPath, SHA256: known.SHA256, Honest: honest}, nil
		}
	}
	return r.verifyFully(p)
}

// pieceOfCopy is how much of an executable is written at a time: Linux keeps it in its cache in pieces of that
// size, and maps one that is there in larger pieces sooner, but each piece whole. With 64 KB the start of a plugin
// takes a millisecond less than with pages; with 1 MB it would hold 4 MB more.
const pieceOfCopy = 64 << 10

// verifyFully copies the executable, hashing what it copies, and puts the copy in
// its place unless a good one is there already.
func (r *Registry) verifyFully(p Plugin) (Verified, error) {
	source, err := foreign.Open(p.Executable, foreign.Rule{})
	if err != nil {
		return Verified{}, p.errorf(pluginapi.CodePluginInvalid, "%s: %w", p.Executable, fault.Plain(err))
	}
	defer source.Close()
	before, err := identify(source)
	if err != nil {
		return Verified{}, p.errorf(pluginapi.CodePluginInvalid, "%s: %w", p.Executable, fault.Plain(err))
	}

	temp, err := r.createTemp(p)
	if err != nil {
		return Verified{}, err
	}
	defer os.Remove(temp.Name()) // fails once it was renamed
	defer temp.Close()
	h := sha256.New()
	if _, err := io.CopyBuffer(io.MultiWriter(temp, h), struct{ io.Reader }{source}, make([]byte, pieceOfCopy)); err != nil {
		if why, _ := fault.Limit(err); why != "" {
			return Verified{}, r.unwritable(err)
		}
		return Verified{}, p.errorf(pluginapi.CodePlugin, "copy %s to %s: %w", p.Executable, r.runDir(), fault.Plain(err))
	}
	sum := hex.EncodeToString(h.Sum(nil))
	if p.SHA256 != "" && sum != p.SHA256 {
		return Verified{}, p.untrusted(sum)
	}
	after, err := identify(source)
	if err != nil || after != before {
		return Verified{}, p.errorf(pluginapi.CodePluginInvalid, "%s changed while it was read", p.Executable).WithHint("try again")
	}
	fresh, err := identify(temp)
	if err != nil {
		return Verified{}, r.unwritable(err)
	}

	path := r.copyPath(sum, p.Executable)
	if got, err := hashFile(path); err != nil || got != sum {
		if err := place(temp, path); err != nil {
			return Verified{}, r.unwritable(err)
		}
	}
	if copied, err := identifyPath(path); err == nil && before.Ctime+int64(racy) < fresh.Ctime {
		r.receipts().write(p.Executable, checked{SHA256: sum, Source: before, Copy: copied})
	}
	return Verified{Plugin: p, Path: path, SHA256: sum}, nil
}

// RememberHonest writes down that a process of v was seen to be what describe.json says. To ask it at each start
// takes a millisecond, and its executable says the same each time.
func (r *Registry) RememberHonest(v Verified) {
	if v.Plugin.describe == (identity{}) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.receipts().read()[v.Plugin.Executable]
	if !ok || known.SHA256 != v.SHA256 || known.Describe == v.Plugin.describe {
		return
	}
	known.Describe = v.Plugin.describe
	r.receipts().write(v.Plugin.Executable, known)
}

func (p Plugin) untrusted(found string) error {
	err := p.errorf(pluginapi.CodePluginUntrusted, "%s is not the file that was installed (sha256 must be %s, is %s)",
		p.Executable, short(p.SHA256), short(found))
	if p.Origin == OriginBundled {
		return err.WithHint("reinstall amux; to run a build of your own: --plugin %s=%s", p.Name, p.Executable)
	}
	return err.WithHint("reinstall the plugin; to run a build of your own: --plugin %s=%s", p.Name, p.Executable)
}

// Pinned returns the executable that has the given hash, for a run that was
// started with it. If its copy is lost or altered and an installed plugin has
// that hash the copy is made again, else the error is PLUGIN_CHANGED.
func (r *Registry) Pinned(hash string) (string, error) {
	if !hashRule.MatchString(hash) {
		return "", pluginapi.Errorf(pluginapi.CodePluginChanged, "%q is no hash of a plugin", hash)
	}
	if path, ok := r.pinnedCopy(hash); ok {
		return path, nil
	}
	for _, p := range r.List() {
		if p.Err == nil && (p.SHA256 == hash || p.SHA256 == "") {
			if verified, err := r.Verify(p); err == nil && verified.SHA256 == hash {
				return verified.Path, nil
			}
		}
	}
	return "", pluginapi.Errorf(pluginapi.CodePluginChanged, "the plugin that the run was started with (sha256 %s) is no longer in %s",
		short(hash), r.runDir())
}

// pinnedCopy finds the copy of that hash and checks it.
func (r *Registry) pinnedCopy(hash string) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	dir := filepath.Join(r.runDir(), hash)
	entries, _ := os.ReadDir(dir)
	known := r.receipts().read()
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if !r.opts.AlwaysVerify {
			for _, c := range known {
				if c.SHA256 == hash && sameFile(path, c.Copy) {
					return path, true
				}
			}
		}
		if got, err := hashFile(path); err == nil && got == hash {
			return path, true
		}
	}
	return "", false
}

func (r *Registry) runDir() string { return filepath.Join(r.opts.ConfigDir, "plugins", "run") }

func (r *Registry) copyPath(hash, executable string) string {
	return filepath.Join(r.runDir(), hash, filepath.Base(executable))
}

func (r *Registry) createTemp(p Plugin) (*os.File, error) {
	if r.opts.ConfigDir == "" {
		return nil, p.errorf(pluginapi.CodeConfig, "no configuration folder is set")
	}
	if err := os.MkdirAll(r.runDir(), 0o700); err != nil {
		return nil, r.unwritable(err)
	}
	temp, err := os.CreateTemp(r.runDir(), ".copy-*")
	if err != nil {
		return nil, r.unwritable(err)
	}
	return temp, nil
}

func (r *Registry) unwritable(err error) error {
	if why, hint := fault.Limit(err); why != "" {
		code := pluginapi.CodeConfig
		if fault.Full(err) {
			code = pluginapi.CodeDiskFull
		}
		return pluginapi.Errorf(code, "cannot write in %s: %s", r.runDir(), why).WithHint("%s", hint)
	}
	return pluginapi.Errorf(pluginapi.CodeConfig, "cannot write in %s: %w", r.runDir(), fault.Plain(err)).
		WithHint("make it writable, or choose another folder with --config-dir or AGENT_MUX_CONFIG_DIR")
}

// place makes temp the file at path: read-only, executable, whole.
func place(temp *os.File, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := temp.Sync(); err != nil {
		return err
	}
	if err := temp.Close(); err != nil { // Linux starts no file that is open for writing
		return err
	}
	if err := os.Chmod(temp.Name(), 0o555); err != nil {
		return err
	}
	return replace(temp.Name(), path)
}

func hashFile(path string) (string, error) {
	f, err := foreign.Open(path, foreign.Rule{})
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !mayExecute(info) {
		return "", os.ErrInvalid
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func identifyPath(path string) (identity, error) {
	f, err := foreign.Open(path, foreign.Rule{})
	if err != nil {
		return identity{}, err
	}
	defer f.Close()
	return identify(f)
}

func sameFile(path string, want identity) bool {
	got, err := identifyPath(path)
	return err == nil && got == want
}
