package install

import (
	"path"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/amux-dev/amux/internal/registry"
	"github.com/amux-dev/amux/internal/sys/pattern"
	"github.com/amux-dev/amux/pluginapi"
)

const (
	// ManifestName is the file that describes a plugin to people and installers.
	ManifestName = "amux-plugin.toml"
	// DescribeName is the file with what the plugin says of itself.
	DescribeName = "describe.json"
	// SumsName is the file with the hashes of a release.
	SumsName = "SHA256SUMS"
	// SignatureName is the file that signs SumsName.
	SignatureName = "SHA256SUMS.minisig"

	receiptName = "receipt.json"
	lockName    = "plugins.lock"
	trustName   = "trust.toml"
	seenName    = "mirrors.json"

	archiveSuffix = ".tar.gz"
	prefix        = "amux-plugin-"
)

var (
	deviceRule   = pattern.New(`^(?i:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)$`)
	platformRule = pattern.New(`^[a-z0-9]+/[a-z0-9]+$`)
	hashRule     = pattern.New(`^[0-9a-f]{64}$`)
)

// CheckName says what is wrong with a plugin's name.
func CheckName(name string) error {
	if registry.IsName(name) {
		return nil
	}
	err := pluginapi.Errorf(pluginapi.CodeValidation, "%.80q is no name for a plugin", name)
	const rule = "a name has at most 40 of a-z, 0-9 and single hyphens, begins with a letter, and is no device name"
	if near := legalName(name); near != "" {
		return err.WithHint("%s: %s", rule, near)
	}
	return err.WithHint(rule)
}

// legalName is the legal name that is most like the given one, or "".
func legalName(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(path.Base(strings.ReplaceAll(name, `\`, "/"))) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' && b.Len() > 0:
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	near := b.String()
	near = strings.TrimRight(near[:min(len(near), 40)], "-")
	if deviceRule.MatchString(near) {
		near += "-agent"
	}
	if !registry.IsName(near) {
		return ""
	}
	return near
}

// checkVersion demands a whole semantic version.
func checkVersion(version string) error {
	if _, err := semver.StrictNewVersion(version); err != nil || len(version) > 64 {
		return pluginapi.Errorf(pluginapi.CodePluginInvalid, "%.80q is no semantic version", version).WithHint("for example 1.2.0")
	}
	return nil
}

// older reports whether version a comes before b.
func older(a, b string) bool {
	va, err1 := semver.StrictNewVersion(a)
	vb, err2 := semver.StrictNewVersion(b)
	return err1 == nil && err2 == nil && va.LessThan(vb)
}

// ExecutableName is that of a plugin's executable on a platform, "linux/amd64".
func ExecutableName(name, platform string) string {
	if strings.HasPrefix(platform, "windows/") {
		return prefix + name + ".exe"
	}
	return prefix + name
}

// ArchiveName is that of a release's archive for a platform.
func ArchiveName(name, version, platform string) string {
	return prefix + name + "_" + version + "_" + underscored(platform) + archiveSuffix
}

// ParseArchiveName takes an archive's name apart.
func ParseArchiveName(file string) (name, version, platform string, ok bool) {
	middle, ok1 := strings.CutPrefix(file, prefix)
	middle, ok2 := strings.CutSuffix(middle, archiveSuffix)
	parts := strings.Split(middle, "_")
	if !ok1 || !ok2 || len(parts) != 4 {
		return "", "", "", false
	}
	name, version, platform = parts[0], parts[1], parts[2]+"/"+parts[3]
	ok = CheckName(name) == nil && checkVersion(version) == nil && platformRule.MatchString(platform)
	return name, version, platform, ok
}

func underscored(platform string) string { return strings.Replace(platform, "/", "_", 1) }
