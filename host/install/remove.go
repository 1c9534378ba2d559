package install

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
)

// Remove takes a plugin off: the lock first, then its files. With a version only
// that one leaves the store; the active one goes with its entry.
func (in *Installer) Remove(name, version string) (removed []string, _ error) {
	unlock, err := in.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	lock, err := ReadLock(in.LockFile())
	if err != nil {
		return nil, err
	}
	entry := lock.Get(name)
	stored := in.storedVersions(name)
	if version != "" && !slices.Contains(stored, version) {
		e := pluginapi.Errorf(pluginapi.CodePluginNotFound, "plugin %s %s is not installed", name, version)
		if len(stored) > 0 {
			e = e.WithHint("there are: %s", strings.Join(stored, ", "))
		}
		return nil, e
	}
	if entry == nil && len(stored) == 0 {
		return nil, pluginapi.Errorf(pluginapi.CodePluginNotFound, "plugin %s is not installed", name).WithHint("see: amux plugin list")
	}
	if err := in.fault("locked"); err != nil {
		return nil, err
	}
	if entry != nil {
		switch {
		case version == "" || version == entry.Version && entry.Link == "":
			removed = append(removed, entry.Version)
			lock.Remove(name)
		case version == entry.Previous:
			entry.Previous = ""
		}
		if err := in.writeLock(lock); err != nil {
			return nil, err
		}
		if lock.Get(name) == nil {
			if err := in.disown(name); err != nil {
				return nil, err
			}
		}
	}
	for _, v := range stored {
		if version != "" && v != version {
			continue
		}
		if err := in.unstore(name, v); err != nil {
			return nil, err
		}
		if !slices.Contains(removed, v) {
			removed = append(removed, v)
		}
	}
	return removed, nil
}

// unstore takes a version out of the store at once, and then away.
func (in *Installer) unstore(name, version string) error {
	stage := in.path("staging")
	if err := os.MkdirAll(stage, 0o700); err != nil {
		return WriteError(err)
	}
	defer removeAll(stage)
	var gone []string
	if in.opts.Gone != nil {
		receipts, _ := filepath.Glob(filepath.Join(in.path("store"), name, version, "*", receiptName))
		for _, file := range receipts {
			if data, err := readSmall(file); err == nil {
				if r, err := parseReceipt(file, data); err == nil {
					gone = append(gone, r.Files[r.Executable])
				}
			}
		}
	}
	if err := os.Rename(filepath.Join(in.path("store"), name, version), filepath.Join(stage, "removed")); err != nil {
		return WriteError(err)
	}
	if err := in.fault("out of the store"); err != nil {
		return err
	}
	_ = os.Remove(filepath.Join(in.path("store"), name)) // if it was the last
	for _, hash := range gone {
		in.opts.Gone(hash)
	}
	return nil
}

// Unused is a version in the store that no lock names.
type Unused struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Dir     string `json:"dir"`
	Size    int64  `json:"size"`
}

// Prune removes the versions that neither the user's lock nor keep names. With
// dry it only lists them.
func (in *Installer) Prune(keep *Lock, dry bool) ([]Unused, error) {
	unlock, err := in.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	lock, err := ReadLock(in.LockFile())
	if err != nil {
		return nil, err
	}
	var unused []Unused
	plugins, _ := os.ReadDir(in.path("store"))
	for _, p := range plugins {
		for _, version := range in.storedVersions(p.Name()) {
			named := func(l *Lock) bool {
				entry := l.Get(p.Name())
				return entry != nil && entry.Link == "" && entry.Version == version
			}
			if !named(lock) && !named(keep) {
				dir := filepath.Join(in.path("store"), p.Name(), version)
				unused = append(unused, Unused{p.Name(), version, dir, sizeOf(dir)})
			}
		}
	}
	if dry {
		return unused, nil
	}
	before := string(lock.Bytes())
	for _, u := range unused {
		if entry := lock.Get(u.Name); entry != nil && entry.Previous == u.Version {
			entry.Previous = ""
		}
	}
	if string(lock.Bytes()) != before {
		if err := in.writeLock(lock); err != nil {
			return nil, err
		}
	}
	for _, u := range unused {
		if err := in.unstore(u.Name, u.Version); err != nil {
			return nil, err
		}
	}
	return unused, nil
}

func sizeOf(dir string) (size int64) {
	_ = filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return nil
	})
	return size
}

// Rollback makes the version active that was before.
func (in *Installer) Rollback(name string) (*Result, error) {
	unlock, err := in.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	lock, err := ReadLock(in.LockFile())
	if err != nil {
		return nil, err
	}
	entry := lock.Get(name)
	switch {
	case entry == nil:
		return nil, pluginapi.Errorf(pluginapi.CodePluginNotFound, "plugin %s is not installed", name).WithHint("see: amux plugin list")
	case entry.Previous == "":
		return nil, pluginapi.Errorf(pluginapi.CodePluginNotFound, "plugin %s has no version to go back to", name).WithHint("see: amux plugin info %s", name)
	}
	dir := storePath(in.opts.Dir, name, entry.Previous, Platform())
	receipt, problems := inspect(dir)
	if receipt == nil || len(problems) > 0 {
		what := "it is gone"
		if len(problems) > 0 {
			what = problems[0].String()
		}
		return nil, pluginapi.Errorf(pluginapi.CodePluginUntrusted, "plugin %s %s cannot be used: %s", name, entry.Previous, what).
			WithHint("install it again: amux plugin install %s --allow-downgrade", name)
	}
	result := &Result{Name: name, Version: entry.Previous, Previous: entry.Version, Source: receipt.Source, Trust: receipt.TrustWords(), Dir: dir, SHA256: receipt.ArchiveSHA256}
	here := underscored(Platform())
	lock.Set(Locked{
		Name: name, Version: entry.Previous, Source: receipt.Source, Constraint: entry.Constraint, Signer: receipt.Signer, Previous: entry.Version,
		H1: map[string]string{here: receipt.H1}, SHA256: map[string]string{here: receipt.ArchiveSHA256},
	})
	return result, in.writeLock(lock)
}

// Upgrade installs the newest version that the entry's constraint allows. A
// pinned or linked plugin is an error of code VALIDATION_ERROR.
func (in *Installer) Upgrade(ctx context.Context, name string, req Request) (*Result, error) {
	unlock, err := in.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	lock, err := ReadLock(in.LockFile())
	if err != nil {
		return nil, err
	}
	entry := lock.Get(name)
	if entry == nil {
		return nil, pluginapi.Errorf(pluginapi.CodePluginNotFound, "plugin %s is not installed", name).WithHint("see: amux plugin list")
	}
	if why := entry.Fixed(); why != "" {
		return nil, pluginapi.Errorf(pluginapi.CodeValidation, "plugin %s %s %s", name, entry.Version, why).
			WithHint("to change it: amux plugin install SOURCE")
	}
	if req.Source, err = in.Reopen(name, entry.Source); err != nil {
		return nil, err
	}
	req.Name, req.Constraint = name, entry.Constraint
	return in.install(ctx, req)
}

// Fixed says why a plugin is not upgraded; "" if it can be.
func (l Locked) Fixed() string {
	switch {
	case l.Link != "":
		return "is linked to " + l.Link
	case l.Constraint == "":
		return "is pinned"
	}
	return ""
}

// Complete fetches what an entry of a lock lacks for a platform: the archive,
// whose hash must be the locked one if there is one, for the h1 of its files.
func (in *Installer) Complete(ctx context.Context, entry *Locked, platform string) error {
	key := underscored(platform)
	if entry.Link != "" || entry.H1[key] != "" {
		return nil
	}
	unlock, err := in.lock()
	if err != nil {
		return err
	}
	defer unlock()
	src, err := in.Reopen(entry.Name, entry.Source)
	if err != nil {
		return err
	}
	r, err := findRelease(ctx, src, entry.Name, ExactConstraint(src, entry.Version))
	if err != nil {
		return err
	}
	if r.version != entry.Version {
		return pluginapi.Errorf(pluginapi.CodePluginNotFound, "%s has no version %s any more", src, entry.Version)
	}
	file := r.archives[platform]
	if file == "" {
		return pluginapi.Errorf(pluginapi.CodePluginNotFound, "plugin %s %s has no build for %s", entry.Name, entry.Version, platform).
			WithHint("there are: %s", strings.Join(slices.Sorted(maps.Keys(r.archives)), ", "))
	}
	stage := in.path("staging")
	if err := os.MkdirAll(stage, 0o700); err != nil {
		return WriteError(err)
	}
	defer removeAll(stage)
	packed := filepath.Join(stage, "archive")
	f, err := os.OpenFile(packed, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return WriteError(err)
	}
	sum, err := download(ctx, src, r.version, file, f, in.fault)
	if closeErr := f.Close(); err == nil && closeErr != nil {
		err = WriteError(closeErr)
	}
	if err != nil {
		return err
	}
	want := entry.SHA256[key]
	if want == "" {
		return pluginapi.Errorf(pluginapi.CodePluginUntrusted, "plugin %s %s: nothing vouches for the archive for %s", entry.Name, entry.Version, platform).
			WithHint("its release has no %s", SumsName)
	}
	if sum != want {
		return wrongHash(entry.Name, entry.Version, file, want, sum)
	}
	_, files, _, err := in.unpackRelease(packed, filepath.Join(stage, "tree"), r, file, platform)
	if err != nil {
		return err
	}
	if entry.H1 == nil {
		entry.H1 = map[string]string{}
	}
	entry.H1[key] = h1(files)
	return nil
}
