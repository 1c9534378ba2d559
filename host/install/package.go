package install

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// Package is what a release is made of.
type Package struct {
	Manifest []byte
	Describe []byte            // what the executable prints with --amux-describe
	Binaries map[string]string // path of the executable, by os/arch
	Extra    []PackFile        // LICENSE, README.md
}

// Write makes a release in a folder: an archive for each platform, the manifest,
// and SHA256SUMS over all of them, which is written last. What an earlier release
// has left there goes; the same package gives the same bytes.
func (p Package) Write(dir string) (*Manifest, Sums, error) {
	m, _, err := ParseManifest(ManifestName, p.Manifest)
	if err != nil {
		return nil, nil, err
	}
	if len(p.Binaries) == 0 {
		return nil, nil, pluginapi.Errorf(pluginapi.CodeValidation, "there is no executable to pack")
	}
	d, err := ParseDescription(DescribeName, p.Describe)
	if err != nil {
		return nil, nil, err
	}
	if err := m.Agrees(d); err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, WriteError(err)
	}
	old, _ := filepath.Glob(filepath.Join(dir, prefix+m.Name+"_*"+archiveSuffix))
	for _, path := range append(old, filepath.Join(dir, SumsName), filepath.Join(dir, SignatureName)) {
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return nil, nil, WriteError(err)
		}
	}
	sums := Sums{}
	write := func(file string, data []byte) error {
		sums[file] = sha256Hex(data)
		return WriteError(os.WriteFile(filepath.Join(dir, file), data, 0o644))
	}
	for _, platform := range slices.Sorted(maps.Keys(p.Binaries)) {
		if !platformRule.MatchString(platform) {
			return nil, nil, pluginapi.Errorf(pluginapi.CodeValidation, "%.40q is no platform", platform).WithHint("for example linux/amd64")
		}
		binary, err := foreign.Read(p.Binaries[platform], foreign.Rule{Limit: maxUnpacked})
		if err != nil {
			return nil, nil, pluginapi.Errorf(pluginapi.CodePluginNotFound, "%s: %w", p.Binaries[platform], fault.Plain(err))
		}
		files := append([]PackFile{
			{Name: ManifestName, Data: p.Manifest},
			{Name: DescribeName, Data: p.Describe},
			{Name: ExecutableName(m.Name, platform), Data: binary, Executable: true},
		}, p.Extra...)
		data, err := PackBytes(files)
		if err != nil {
			return nil, nil, err
		}
		if err := write(ArchiveName(m.Name, m.Version, platform), data); err != nil {
			return nil, nil, err
		}
	}
	if err := write(ManifestName, p.Manifest); err != nil {
		return nil, nil, err
	}
	return m, sums, WriteError(os.WriteFile(filepath.Join(dir, SumsName), sums.Bytes(), 0o644))
}

// Release reads what a folder that Write has made is a release of, after it has
// hashed every file.
func Release(dir string) (name, version string, sums []byte, _ error) {
	sums, err := foreign.Read(filepath.Join(dir, SumsName), foreign.Rule{Limit: maxSums})
	if err != nil {
		return "", "", nil, pluginapi.Errorf(pluginapi.CodePluginNotFound, "%s: %w", filepath.Join(dir, SumsName), fault.Plain(err)).
			WithHint("a release is made by: amux plugin package")
	}
	parsed, err := ParseSums(sums)
	if err != nil {
		return "", "", nil, err
	}
	if name, version, _, err = parsed.release(); err != nil {
		return "", "", nil, err
	}
	for _, file := range slices.Sorted(maps.Keys(parsed)) {
		got, err := hashFile(filepath.Join(dir, file))
		if err != nil {
			return "", "", nil, pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s: %w", filepath.Join(dir, file), fault.Plain(err))
		}
		if got != parsed[file] {
			return "", "", nil, pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s is not what %s says", filepath.Join(dir, file), SumsName).
				WithHint("make the release again: amux plugin package")
		}
	}
	return name, version, sums, nil
}

// WriteSignature signs the release in a folder. Others must be able to read it.
func WriteSignature(dir string, signature []byte) error {
	return replacePublic(filepath.Join(dir, SignatureName), signature)
}

// SameDescription compares two texts of describe.json as messages.
func SameDescription(a, b []byte) bool {
	da, err1 := ParseDescription("", a)
	db, err2 := ParseDescription("", b)
	return err1 == nil && err2 == nil && proto.Equal(da, db)
}

// Extras reads LICENSE and README.md of a folder, if they are there.
func Extras(dir string) ([]PackFile, error) {
	var extras []PackFile
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodePluginNotFound, "%s: %w", dir, fault.Plain(err))
	}
	for _, e := range entries {
		base, _, _ := strings.Cut(e.Name(), ".")
		if !e.Type().IsRegular() || base != "LICENSE" && base != "NOTICE" && e.Name() != "README.md" {
			continue
		}
		data, err := readSmall(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, pluginapi.Errorf(pluginapi.CodePluginNotFound, "%w", err)
		}
		extras = append(extras, PackFile{Name: e.Name(), Data: data})
	}
	return extras, nil
}
