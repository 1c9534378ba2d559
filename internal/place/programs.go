package place

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
)

// Programs is the folder with the programs of this amux. What goes to other machines is in
// far/GOOS-GOARCH below it; what goes to machines of this kind may lie in it itself.
type Programs string

// FarProgram is what is started at a place.
const FarProgram = "amux-far"

// needed are the programs that a place gets, besides FarProgram.
var needed = []string{"amux-shim", "amux-bridge"}

// kinds of machines, as uname -s and -m say them, by GOOS-GOARCH.
var kinds = map[string][]string{
	"linux-amd64":  {"Linux-x86_64", "Linux-amd64"},
	"linux-arm64":  {"Linux-aarch64", "Linux-arm64"},
	"darwin-arm64": {"Darwin-arm64"},
	"darwin-amd64": {"Darwin-x86_64"},
}

// folders are those that hold programs, by GOOS-GOARCH.
func (d Programs) folders() map[string]string {
	found := map[string]string{}
	for kind := range kinds {
		dirs := []string{filepath.Join(string(d), "far", kind)}
		if kind == runtime.GOOS+"-"+runtime.GOARCH {
			dirs = append(dirs, string(d))
		}
		for _, dir := range dirs {
			if _, err := os.Stat(filepath.Join(dir, FarProgram)); err == nil {
				found[kind] = dir
				break
			}
		}
	}
	return found
}

// sums are the hashes of what each kind of machine gets, by the words of uname.
func (d Programs) sums() (map[string]string, error) {
	sums := map[string]string{}
	for kind, dir := range d.folders() {
		sum, err := sumOf(dir)
		if err != nil {
			return nil, err
		}
		for _, machine := range kinds[kind] {
			sums[machine] = sum
		}
	}
	if len(sums) == 0 {
		return nil, fmt.Errorf("there is no %s in %s, which would be put there", FarProgram, d)
	}
	return sums, nil
}

// known are the hashes of folders, by what sumOf sees of their files.
var known sync.Map

// sumOf is the hash of what is made of a folder. A process reads the files once, for as long as
// they stay the same.
func sumOf(dir string) (string, error) {
	seen := dir
	for _, name := range append([]string{FarProgram}, needed...) {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		seen += fmt.Sprintf("\x00%d %d", info.Size(), info.ModTime().UnixNano())
	}
	if sum, ok := known.Load(seen); ok {
		return sum.(string), nil
	}
	h := sha256.New()
	if err := writeBundle(h, dir); err != nil {
		return "", err
	}
	sum := hex.EncodeToString(h.Sum(nil))
	known.Store(seen, sum)
	return sum, nil
}

// machines are the kinds of machines that there are programs for.
func (d Programs) machines() []string {
	var names []string
	for kind := range d.folders() {
		names = append(names, kinds[kind][0])
	}
	return slices.Sorted(slices.Values(names))
}

// write writes what a machine of that kind gets.
func (d Programs) write(w io.Writer, machine string) error {
	for kind, dir := range d.folders() {
		if slices.Contains(kinds[kind], machine) {
			return writeBundle(w, dir)
		}
	}
	return fmt.Errorf("there are no programs for %s", machine)
}

// mark stands between FarProgram and what it brings.
const mark = "\n--amux-far brings--\n"

// writeBundle writes FarProgram with the others behind it: systems run it as it is, and it
// unpacks what it brings.
func writeBundle(w io.Writer, dir string) error {
	if err := copyFile(w, filepath.Join(dir, FarProgram), func(int64) error { return nil }); err != nil {
		return err
	}
	if _, err := io.WriteString(w, mark); err != nil {
		return err
	}
	archive := tar.NewWriter(w)
	for _, name := range needed {
		if err := copyFile(archive, filepath.Join(dir, name), func(size int64) error {
			return archive.WriteHeader(&tar.Header{Name: name, Mode: 0o700, Size: size})
		}); err != nil {
			return err
		}
	}
	return archive.Close()
}

// copyFile copies a file, after head was told its size.
func copyFile(w io.Writer, path string, head func(size int64) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = head(info.Size())
	}
	if err == nil {
		_, err = io.Copy(w, f)
	}
	return err
}

// Unpack puts the programs that the file self brings into a folder beside it, named by the
// hash that they must have, and removes the file.
func Unpack(self, sum string) error {
	data, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != sum {
		return errors.New("what has arrived is not what was sent")
	}
	at := bytes.LastIndex(data, []byte(mark))
	if at < 0 {
		return errors.New("it brings nothing")
	}
	dir, err := os.MkdirTemp(filepath.Dir(self), ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, FarProgram), data[:at], 0o700); err != nil {
		return err
	}
	for archive := tar.NewReader(bytes.NewReader(data[at+len(mark):])); ; {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if !slices.Contains(needed, header.Name) || header.Typeflag != tar.TypeReg {
			return fmt.Errorf("it brings %.80q", header.Name)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, header.Name), content, 0o700); err != nil {
			return err
		}
	}
	to := filepath.Join(filepath.Dir(self), sum)
	if err := os.Rename(dir, to); err != nil {
		if _, there := os.Stat(filepath.Join(to, FarProgram)); there != nil {
			return err // nobody else was quicker
		}
	}
	return os.Remove(self)
}

// Arguments are what Dialer.Known may be: the hashes of what there is now.
func (d Programs) Arguments() ([]string, error) {
	sums, err := d.sums()
	return arguments(sums), err
}

// arguments are the sums in an order that is always the same.
func arguments(sums map[string]string) []string {
	var args []string
	for _, machine := range slices.Sorted(maps.Keys(sums)) {
		args = append(args, machine+"="+sums[machine])
	}
	return args
}
