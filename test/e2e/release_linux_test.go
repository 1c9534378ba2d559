package e2e

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
	"go.yaml.in/yaml/v3"

	"github.com/amux-dev/amux/host/install"
)

// What a release consists of, of version 1.2.3, fits together and is installed as a user
// would install it. Each system is built for one processor, as make cross does;
// AMUX_TEST_RELEASE=1 builds for all six platforms, as make release does.
func TestRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds for three platforms, which takes minutes: make test")
	}
	platforms := []string{"linux/" + runtime.GOARCH, "darwin/arm64", "windows/amd64"}
	if os.Getenv("AMUX_TEST_RELEASE") != "" {
		platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}
	}
	packaged := 0 // systems with packages
	for _, p := range platforms {
		if strings.HasPrefix(p, "linux/") {
			packaged++
		}
	}
	if _, err := exec.LookPath("zip"); err != nil {
		t.Skip("zip is not installed: apt install zip")
	}
	t.Parallel()
	dist := filepath.Join(t.TempDir(), "dist")
	sh := func(t *testing.T, line string, env ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", "-c", line)
		cmd.Dir, cmd.Env = filepath.Join("..", ".."), append(os.Environ(), env...)
		said, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", line, err, said)
		}
		return string(said)
	}
	read := func(t *testing.T, path string) []byte {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	public, secret, err := install.GenerateKey("")
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "release.key")
	if err := os.WriteFile(key, secret, 0o600); err != nil {
		t.Fatal(err)
	}
	sh(t, "sh tools/release.sh "+dist, "VERSION=1.2.3", "AMUX_SIGNING_KEY="+key, "PLATFORMS="+strings.Join(platforms, " "))

	t.Run("signature", func(t *testing.T) {
		var trusted minisign.PublicKey
		if err := trusted.UnmarshalText(public); err != nil {
			t.Fatal(err)
		}
		sums, signature := read(t, filepath.Join(dist, "SHA256SUMS")), read(t, filepath.Join(dist, "SHA256SUMS.minisig"))
		if !minisign.Verify(trusted, sums, signature) || minisign.Verify(trusted, append(sums, '\n'), signature) {
			t.Errorf("the signature %s does not fit", signature)
		}
		if !strings.Contains(string(signature), "trusted comment: amux 1.2.3\n") {
			t.Errorf("the signature names no version: %s", signature)
		}
		files, err := os.ReadDir(dist)
		if err != nil || len(files)-2 != strings.Count(string(sums), "\n") || len(files) != len(platforms)+3*packaged+2+2 {
			t.Errorf("%d files (%v), checksums %s", len(files), err, sums)
		}
		sh(t, "cd "+dist+" && sha256sum --strict -c SHA256SUMS")
	})
	t.Run("manifests", func(t *testing.T) {
		built := regexp.MustCompile(`_(linux|darwin|windows)_(amd64|arm64)\.`)
		// hashOf is what stands for an archive; of one that was not built a blank to fill in.
		hashOf := func(url string) string {
			const releases = "https://github.com/amux-dev/amux/releases/download/v1.2.3/"
			if !strings.HasPrefix(url, releases) {
				t.Errorf("address %q", url)
			}
			of := built.FindStringSubmatch(url)
			if of == nil {
				t.Fatalf("address %q", url)
			}
			if !slices.Contains(platforms, of[1]+"/"+of[2]) {
				return "@" + of[1] + "_" + of[2] + "@"
			}
			return fmt.Sprintf("%x", sha256.Sum256(read(t, filepath.Join(dist, path.Base(url)))))
		}
		var scoop struct {
			Version, Bin string
			Architecture map[string]struct {
				URL, Hash  string
				ExtractDir string `json:"extract_dir"`
			}
		}
		if err := json.Unmarshal(read(t, filepath.Join(dist, "amux.json")), &scoop); err != nil || scoop.Version != "1.2.3" || len(scoop.Architecture) != 2 {
			t.Fatalf("%+v: %v", scoop, err)
		}
		for name, a := range scoop.Architecture {
			if a.Hash != hashOf(a.URL) {
				t.Errorf("%s has another hash than %q", name, a.URL)
			}
			if strings.HasPrefix(a.Hash, "@") {
				continue
			}
			archive, err := zip.OpenReader(filepath.Join(dist, path.Base(a.URL)))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{scoop.Bin, "amux-shim.exe", "amux-bridge.exe", "amux-schema.exe", "amux-api.exe", "plugins/claude/amux-plugin-claude.exe", "plugins/claude/describe.json"} {
				if info, err := fs.Stat(archive, a.ExtractDir+"/"+file); err != nil || info.Size() == 0 {
					t.Errorf("%s: %v", name, err)
				}
			}
			archive.Close()
		}
		formula := string(read(t, filepath.Join(dist, "amux.rb")))
		found := regexp.MustCompile(`url "(.*)"\n\s*sha256 "(.*)"\n`).FindAllStringSubmatch(formula, -1)
		for _, f := range found {
			if f[2] != hashOf(f[1]) {
				t.Errorf("the formula has another hash than %s", f[1])
			}
		}
		if len(found) != 4 || strings.Contains(formula, "@version@") {
			t.Errorf("formula %s", formula)
		}
	})
	t.Run("archive", func(t *testing.T) {
		t.Parallel()
		root := t.TempDir()
		said := sh(t, "cd $ROOT && tar xzf $DIST/amux_1.2.3_linux_"+runtime.GOARCH+".tar.gz && mkdir bin && ln -s ../$(echo amux_*)/amux bin/amux && HOME=$ROOT bin/amux --version && env -i HOME=$ROOT PATH=$ROOT/bin:/usr/bin:/bin amux run demo '[say:unpacked]' </dev/null && ls amux_*/completions/amux.zsh amux_*/man/man1/amux-run.1.gz",
			"ROOT="+root, "DIST="+dist, "AMUX_CONFIG_DIR=", "AGENT_MUX_CONFIG_DIR=")
		if !strings.Contains(said, "amux 1.2.3 (") || !strings.Contains(said, "unpacked") {
			t.Errorf("amux said %s", said)
		}
	})
	t.Run("packages", func(t *testing.T) { testPackages(t, sh, dist) })
}

// The workflow is YAML, and builds by commands that the Makefile has.
func TestReleaseWorkflow(t *testing.T) {
	t.Parallel()
	read := func(path string) []byte {
		data, err := os.ReadFile(filepath.Join("..", "..", path))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct{ Uses, Run string }
		}
	}
	if err := yaml.Unmarshal(read(".github/workflows/release.yml"), &workflow); err != nil {
		t.Fatal(err)
	}
	makefile := string(read("Makefile"))
	targets, pinned := 0, regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40}$`)
	for name, job := range workflow.Jobs {
		for _, step := range job.Steps {
			if step.Uses != "" && !pinned.MatchString(step.Uses) {
				t.Errorf("job %s uses %s, which is not pinned to a commit", name, step.Uses)
			}
			if said, err := exec.Command("bash", "-n", "-c", step.Run).CombinedOutput(); err != nil {
				t.Errorf("job %s: %v: %s", name, err, said)
			}
			for _, target := range regexp.MustCompile(`(?m)^\s*make ([\w-]+)`).FindAllStringSubmatch(step.Run, -1) {
				targets++
				if !strings.Contains(makefile, "\n"+target[1]+":") {
					t.Errorf("job %s calls make %s, which is not in the Makefile", name, target[1])
				}
			}
		}
	}
	if targets == 0 {
		t.Error("the workflow builds nothing")
	}
}

// The packages install into a root of their own, where nothing else is, and amux runs
// there: by the name on the path, with its plugins, as the user would. What the package
// tool installed it removes again.
func testPackages(t *testing.T, sh func(*testing.T, string, ...string) string, dist string) {
	if os.Getuid() != 0 {
		t.Skip("only root can install packages")
	}
	rpmArch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	for name, tool := range map[string]struct{ pattern, install, remove string }{
		"deb": {"*_" + runtime.GOARCH + ".deb", "mkdir -p $ROOT/var/lib/dpkg/updates $ROOT/var/lib/dpkg/info && touch $ROOT/var/lib/dpkg/status && dpkg --log=/dev/null --root=$ROOT -i $PACKAGE", "dpkg --log=/dev/null --root=$ROOT -r amux"},
		"rpm": {"*." + rpmArch + ".rpm", "rpm --root $ROOT --initdb && rpm --root $ROOT -i --nodeps $PACKAGE", "rpm --root $ROOT -e amux"},
		"apk": {"*_" + rpmArch + ".apk", "tar -C $ROOT --warning=no-unknown-keyword -xzf $PACKAGE", "rm -r $ROOT/usr"}, // no tool but Alpine's own installs it
	} {
		t.Run(name, func(t *testing.T) {
			if program, _, _ := strings.Cut(tool.remove, " "); name != "apk" {
				if _, err := exec.LookPath(program); err != nil {
					t.Skipf("%s is not installed: apt install %[1]s", program)
				}
			}
			root := t.TempDir()
			found, _ := filepath.Glob(filepath.Join(dist, tool.pattern))
			if len(found) != 1 {
				t.Fatalf("packages %q", found)
			}
			in := []string{"ROOT=" + root, "PACKAGE=" + found[0]}
			sh(t, tool.install, in...)
			for _, path := range []string{
				"usr/share/man/man1/amux.1.gz", "usr/share/man/man1/amux-run.1.gz", "usr/share/bash-completion/completions/amux",
				"usr/share/zsh/site-functions/_amux", "usr/share/fish/vendor_completions.d/amux.fish", "usr/share/doc/amux/LICENSE", "usr/share/doc/amux/NOTICE",
			} {
				if info, err := os.Stat(filepath.Join(root, path)); err != nil || info.Size() == 0 {
					t.Errorf("%s: %v", path, err)
				}
			}
			// In a namespace of its own, so that /proc is that of the root.
			const inside = "unshare -pfm --mount-proc=$ROOT/proc env -i HOME=/home/me PATH=/usr/bin:/usr/sbin:/bin chroot $ROOT amux "
			said := sh(t, "mkdir -p $ROOT/proc $ROOT/dev $ROOT/tmp $ROOT/home/me && mknod -m 666 $ROOT/dev/null c 1 3 && "+inside+"--version && "+inside+"run demo '[say:packaged]' </dev/null", in...)
			if !strings.Contains(said, "amux 1.2.3 (") || !strings.Contains(said, "packaged") {
				t.Errorf("amux said %s", said)
			}
			sh(t, tool.remove, in...)
			if _, err := os.Lstat(filepath.Join(root, "usr/bin/amux")); err == nil {
				t.Error("amux was not removed")
			}
		})
	}
}
