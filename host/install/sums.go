package install

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const maxSums = 1 << 20

// Sums is the content of SHA256SUMS: hashes by file name.
type Sums map[string]string

// ParseSums reads the format of sha256sum.
func ParseSums(data []byte) (Sums, error) {
	sums := Sums{}
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			continue
		}
		hash, name, ok := strings.Cut(line, " ")
		name = strings.TrimLeft(name, " ")
		name = strings.TrimPrefix(name, "*")
		switch {
		case !ok || !hashRule.MatchString(hash) || !elementRule.MatchString(name):
			return nil, invalid("%s:%d: want a SHA-256 sum, two spaces and a file's name", SumsName, number)
		case sums[name] != "":
			return nil, invalid("%s:%d: %s is there twice", SumsName, number, name)
		}
		sums[name] = hash
	}
	if len(sums) == 0 {
		return nil, invalid("%s is empty", SumsName)
	}
	return sums, nil
}

// Bytes is the text of SHA256SUMS.
func (s Sums) Bytes() []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&b, "%s  %s\n", s[name], name)
	}
	return b.Bytes()
}

// release is the plugin, version and archives that sums are about. They must be
// about one release only.
func (s Sums) release() (name, version string, archives map[string]string, err error) {
	archives = map[string]string{}
	for file := range s {
		n, v, platform, ok := ParseArchiveName(file)
		if !ok {
			continue
		}
		if name != "" && (n != name || v != version) {
			return "", "", nil, invalid("%s is of more than one release", SumsName)
		}
		name, version, archives[platform] = n, v, file
	}
	if name == "" {
		return "", "", nil, invalid("%s names no archive of a plugin", SumsName)
	}
	return name, version, archives, nil
}

// h1 is the hash over all files of a package, from the hash of each; the same as
// h1 of Go's and Terraform's lock files.
func h1(files map[string]string) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%s  %s\n", files[name], name)
	}
	return "h1:" + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

func sha256Hex(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
