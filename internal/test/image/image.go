// Package image makes images of containers for tests: busybox, and the names of what it can be.
package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// git is a program of the image's that makes what it is asked to clone, and else is this machine's.
const git = `#!/bin/sh
[ "$1" = clone ] || exec /bin/real-git "$@"
for folder; do :; done
/bin/real-git init -q --template= "$folder" && echo "$@" >"$folder/cloned"
`

// addGit adds this machine's git and the libraries that it loads.
func (a *archive) addGit() {
	a.t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		a.t.Fatal(err)
	}
	a.addFile("bin/real-git", path)
	loads, err := exec.Command("ldd", path).Output()
	if err != nil {
		a.t.Fatal(err)
	}
	for word := range strings.FieldsSeq(string(loads)) {
		if strings.HasPrefix(word, "/") {
			a.addFile(word[1:], word)
		}
	}
}

// addFile adds a program or a library of this machine.
func (a *archive) addFile(name, path string) {
	a.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		a.t.Fatal(err)
	}
	a.add(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755}, data)
}

// Rootfs is the file system of an image, as a tar archive.
func Rootfs(t *testing.T) []byte {
	t.Helper()
	path, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	a := newArchive(t)
	a.add(&tar.Header{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o755}, nil)
	a.add(&tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777}, nil)
	a.addFile("bin/busybox", path)
	a.addGit()
	a.add(&tar.Header{Name: "bin/git", Typeflag: tar.TypeReg, Mode: 0o755}, []byte(git))
	for _, name := range strings.Fields("sh uname mkdir cat chmod sleep ls id setsid env dd kill tail rm") {
		a.add(&tar.Header{Name: "bin/" + name, Typeflag: tar.TypeSymlink, Linkname: "busybox", Mode: 0o777}, nil)
	}
	return a.close()
}

// OCI is an image with Rootfs as an archive in the layout of the OCI (Open Container Initiative),
// with a name. entry is what it runs.
func OCI(t *testing.T, name string, entry []string) []byte {
	t.Helper()
	type object = map[string]any
	a := newArchive(t)
	blob := func(data []byte) object {
		sum := sha256.Sum256(data)
		hash := hex.EncodeToString(sum[:])
		a.add(&tar.Header{Name: "blobs/sha256/" + hash, Typeflag: tar.TypeReg, Mode: 0o644}, data)
		return object{"digest": "sha256:" + hash, "size": len(data)}
	}
	encode := func(v any) []byte {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	typed := func(o object, kind string) object {
		o["mediaType"] = "application/vnd.oci.image." + kind
		return o
	}
	layer := blob(Rootfs(t))
	config := blob(encode(object{
		"architecture": runtime.GOARCH, "os": "linux", "config": object{"Entrypoint": entry, "Env": []string{"PATH=/bin"}},
		"rootfs": object{"type": "layers", "diff_ids": []any{layer["digest"]}},
	}))
	manifest := typed(blob(encode(typed(object{
		"schemaVersion": 2, "config": typed(config, "config.v1+json"), "layers": []object{typed(layer, "layer.v1.tar")},
	}, "manifest.v1+json"))), "manifest.v1+json")
	manifest["annotations"] = object{"io.containerd.image.name": name}
	a.add(&tar.Header{Name: "index.json", Typeflag: tar.TypeReg, Mode: 0o644}, encode(object{"schemaVersion": 2, "manifests": []object{manifest}}))
	a.add(&tar.Header{Name: "oci-layout", Typeflag: tar.TypeReg, Mode: 0o644}, encode(object{"imageLayoutVersion": "1.0.0"}))
	return a.close()
}

// archive is a tar archive that is being written.
type archive struct {
	t   *testing.T
	out bytes.Buffer
	w   *tar.Writer
}

func newArchive(t *testing.T) *archive {
	a := &archive{t: t}
	a.w = tar.NewWriter(&a.out)
	return a
}

func (a *archive) add(h *tar.Header, data []byte) {
	a.t.Helper()
	h.Size = int64(len(data))
	if err := a.w.WriteHeader(h); err != nil {
		a.t.Fatal(err)
	}
	if _, err := a.w.Write(data); err != nil {
		a.t.Fatal(err)
	}
}

func (a *archive) close() []byte {
	a.t.Helper()
	if err := a.w.Close(); err != nil {
		a.t.Fatal(err)
	}
	return a.out.Bytes()
}
