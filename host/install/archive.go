package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/amux-dev/amux/internal/sys/pattern"
	"github.com/amux-dev/amux/pluginapi"
)

// Limits of an archive: more than any plugin needs, and little enough for a disk.
const (
	maxFiles    = 4096
	maxUnpacked = 512 << 20
	maxArchive  = 256 << 20
	maxDepth    = 16
)

// PackFile is a file that goes into an archive.
type PackFile struct {
	Name       string // with slashes
	Data       []byte
	Executable bool
}

// Pack writes an archive. The same files give the same bytes.
func Pack(w io.Writer, files []PackFile) error {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b PackFile) int { return strings.Compare(a.Name, b.Name) })
	names := newNames()
	compressed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		if err := names.add(f.Name); err != nil {
			return err
		}
		mode := int64(0o644)
		if f.Executable {
			mode = 0o755
		}
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.Name, Size: int64(len(f.Data)), Mode: mode,
			ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR,
		}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if _, err := archive.Write(f.Data); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

// unpack writes the files of an archive below root and returns the hash of each.
// What no package needs is refused, not repaired: who packs it means harm or has
// made a mistake. executable is the name of the one file that may be run.
func unpack(r io.Reader, root *os.Root, executable string, each func()) (map[string]string, error) {
	compressed, err := gzip.NewReader(r)
	if err != nil {
		return nil, invalid("it is no gzip file: %v", err)
	}
	// Counted before tar sees it: a header of many GiB is a bomb as well.
	plain := &counted{r: compressed, left: maxUnpacked + maxFiles*4<<10}
	archive := tar.NewReader(plain)
	names := newNames()
	files := map[string]string{}
	var total int64
	buffer := make([]byte, 256<<10)
	for {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if plain.left < 0 {
			return nil, tooLarge()
		}
		if err != nil {
			return nil, readError(err)
		}
		name := strings.TrimPrefix(header.Name, "./")
		switch header.Typeflag {
		case tar.TypeReg:
		case tar.TypeDir:
			name = strings.TrimSuffix(name, "/")
			if name == "" {
				continue
			}
		case tar.TypeSymlink, tar.TypeLink:
			return nil, invalid("%.120q is a link", header.Name)
		case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
			return nil, invalid("%.120q is a device", header.Name)
		default:
			return nil, invalid("%.120q is of the unknown kind %q", header.Name, header.Typeflag)
		}
		if header.Mode&0o7000 != 0 {
			return nil, invalid("%.120q has the setuid, setgid or sticky bit", header.Name)
		}
		if header.Typeflag == tar.TypeDir {
			if err := names.addFolder(name); err != nil {
				return nil, err
			}
			continue // made when it holds something
		}
		if err := names.add(name); err != nil {
			return nil, err
		}
		if header.Size < 0 || header.Size > maxUnpacked-total {
			return nil, tooLarge()
		}
		sum, n, err := writeFile(root, name, archive, header.Size, buffer, each)
		total += n
		if plain.left < 0 {
			return nil, tooLarge()
		}
		if err != nil {
			return nil, err
		}
		files[name] = sum
	}
	// To the end of the stream: its checksum covers what tar has not read.
	if _, err := io.Copy(io.Discard, plain); err != nil || plain.left < 0 {
		if plain.left < 0 {
			return nil, tooLarge()
		}
		return nil, readError(err)
	}
	for _, needed := range []string{ManifestName, DescribeName, executable} {
		if _, ok := files[needed]; !ok {
			return nil, invalid("it holds no %s", needed)
		}
	}
	return files, nil
}

// writeFile writes one file of an archive, private until it is whole.
func writeFile(root *os.Root, name string, r io.Reader, size int64, buffer []byte, each func()) (string, int64, error) {
	if dir := path.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return "", 0, WriteError(err)
		}
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", 0, WriteError(err)
	}
	defer f.Close()
	h := sha256.New()
	var n int64
	for {
		got, readErr := r.Read(buffer)
		if got > 0 {
			if n += int64(got); n > size {
				return "", n, tooLarge()
			}
			h.Write(buffer[:got])
			if _, err := f.Write(buffer[:got]); err != nil {
				return "", n, WriteError(err)
			}
			each()
		}
		if readErr == io.EOF {
			break
		}
		if readErr != nil {
			return "", n, readError(readErr)
		}
	}
	if err := f.Close(); err != nil {
		return "", n, WriteError(err)
	}
	return hex.EncodeToString(h.Sum(nil)), n, nil
}

// names are those of one archive. They must be plain on every platform, and
// differ also where upper and lower case do not.
type names struct {
	files   map[string]bool   // folded
	folders map[string]string // folded → as written
	count   int
}

func newNames() *names { return &names{files: map[string]bool{}, folders: map[string]string{}} }

// elementRule is deliberately narrow: what lies in a package is made for it.
var elementRule = pattern.New(`^[A-Za-z0-9_][A-Za-z0-9._+@-]*$`)

var reserved = []string{receiptName, SumsName, SignatureName}

func (n *names) check(name string) error {
	if n.count++; n.count > maxFiles {
		return invalid("it holds more than %d files", maxFiles)
	}
	if len(name) > 240 {
		return invalid("the name %.60q… is too long", name)
	}
	if strings.HasPrefix(name, "/") || strings.Contains(name, `\`) || strings.Contains(name, ":") {
		return invalid("%.120q is no path within it", name)
	}
	elements := strings.Split(name, "/")
	if len(elements) > maxDepth {
		return invalid("%.120q is nested too deep", name)
	}
	for _, element := range elements {
		base, _, _ := strings.Cut(element, ".")
		switch {
		case element == "..", element == ".", element == "":
			return invalid("%.120q is no path within it", name)
		case deviceRule.MatchString(base):
			return invalid("%.120q names a device on Windows", name)
		case !elementRule.MatchString(element) || strings.HasSuffix(element, "."):
			return invalid("%.120q is not a name that every system allows", name)
		}
	}
	for _, own := range reserved {
		if strings.EqualFold(elements[0], own) {
			return invalid("%.120q is a name that amux uses itself", name)
		}
	}
	return nil
}

func (n *names) add(name string) error {
	if err := n.check(name); err != nil {
		return err
	}
	folded := strings.ToLower(name)
	if _, isFolder := n.folders[folded]; n.files[folded] || isFolder {
		return invalid("%.120q is there twice, or differs from another name in case only", name)
	}
	n.files[folded] = true
	if dir := path.Dir(name); dir != "." {
		return n.parents(dir)
	}
	return nil
}

func (n *names) addFolder(name string) error {
	if err := n.check(name); err != nil {
		return err
	}
	return n.parents(name)
}

func (n *names) parents(dir string) error {
	for ; dir != "."; dir = path.Dir(dir) {
		folded := strings.ToLower(dir)
		if as, known := n.folders[folded]; n.files[folded] || known && as != dir {
			return invalid("%.120q is there twice, or differs from another name in case only", dir)
		}
		n.folders[folded] = dir
	}
	return nil
}

// counted bounds what is read.
type counted struct {
	r    io.Reader
	left int64
}

func (c *counted) Read(b []byte) (int, error) {
	if c.left < 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := c.r.Read(b)
	c.left -= int64(n)
	return n, err
}

func invalid(format string, args ...any) error {
	return pluginapi.Errorf(pluginapi.CodePluginInvalid, format, args...).WithHint("report it to the plugin's author")
}

func tooLarge() error { return invalid("it holds more than %d MiB", maxUnpacked>>20) }

func readError(err error) error {
	if _, ok := errors.AsType[*pluginapi.Error](err); ok {
		return err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return invalid("it ends too early")
	}
	return invalid("it is damaged: %v", err)
}

// PackBytes is Pack into memory.
func PackBytes(files []PackFile) ([]byte, error) {
	var b bytes.Buffer
	err := Pack(&b, files)
	return b.Bytes(), err
}
