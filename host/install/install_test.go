//go:build unix

package install

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/registry"
	"github.com/amux-dev/amux/pluginapi"
)

func TestInstallSigned(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.trust("acme", "acme", "acme-*")
	result := w.install(w.release("acme", "1.0.0", "acme", nil))
	if result.Trust != "signed by acme ("+ShortKey(w.public("acme"))+")" || result.Unchanged {
		t.Errorf("got %+v", result)
	}
	for name, mode := range map[string]os.FileMode{ExecutableName("acme", Platform()): 0o555, ManifestName: 0o444, receiptName: 0o444, SumsName: 0o444} {
		info, err := os.Stat(filepath.Join(result.Dir, name))
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	lock, _ := ReadLock(w.installer().LockFile())
	entry := lock.Get("acme")
	if len(entry.SHA256) != 2 || len(entry.H1) != 1 || entry.Signer != w.public("acme") || entry.Constraint != "" {
		t.Errorf("locked %+v", entry)
	}
	again := w.install(result.Source[len("file:"):])
	if !again.Unchanged {
		t.Error("the same again is a change")
	}
	if left, _ := os.ReadDir(filepath.Join(w.dir, "staging")); len(left) > 0 {
		t.Errorf("staging holds %v", left)
	}

	// What is started agrees with what is installed.
	r := registry.New(registry.Options{ConfigDir: filepath.Dir(w.dir), PluginDir: w.dir, Version: "0.4.0"})
	p, agent, err := r.Agent("acme")
	if err != nil || p.Trust != result.Trust || p.Dir != result.Dir || agent.Summary != "an agent" {
		t.Fatalf("registry: %+v, %v", p, err)
	}
	if _, err := r.Verify(p); err != nil {
		t.Error(err)
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	yes := func(Question) bool { return true }
	no := func(Question) bool { return false }
	var sum string
	for _, test := range []struct {
		name   string
		signer string // of the release; "acme" is trusted
		req    func(*Request)
		trust  string // beginning of the result; "" for a refusal
		says   string
	}{
		{"signed", "acme", func(*Request) {}, "signed by acme", ""},
		{"signed, signature required", "acme", func(r *Request) { r.Require = RequireSignature }, "signed by acme", ""},
		{"unsigned", "", func(*Request) {}, "", "is not signed"},
		{"unsigned, sum given", "", func(r *Request) { r.SHA256 = sum }, "checksum pinned", ""},
		{"unsigned, accepted", "", func(r *Request) { r.Ask = yes }, "checksum pinned", ""},
		{"unsigned, not accepted", "", func(r *Request) { r.Ask = no }, "", "was not accepted"},
		{"unsigned, none required", "", func(r *Request) { r.Require = RequireNone }, "unverified", ""},
		{"unsigned, checksum required", "", func(r *Request) { r.Require = RequireChecksum; r.Ask = yes }, "", "--sha256"},
		{"unsigned, signature required", "", func(r *Request) { r.Require = RequireSignature; r.SHA256 = sum; r.Ask = yes }, "", "signatures are required"},
		{"unknown key", "stranger", func(*Request) {}, "", "amux plugin trust add"},
		{"unknown key, sum given", "stranger", func(r *Request) { r.SHA256 = sum }, "checksum pinned", ""},
		{"unknown key, signature required", "stranger", func(r *Request) { r.Require = RequireSignature; r.SHA256 = sum }, "", "which is not trusted"},
		{"key of other plugins", "others", func(*Request) {}, "", "which is not trusted for it"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorkshop(t)
			w.trust("acme", "acme")
			w.trust("others", "other-*")
			dir := w.release("acme", "1.0.0", test.signer, nil)
			data, _ := os.ReadFile(filepath.Join(dir, ArchiveName("acme", "1.0.0", Platform())))
			sum = sha256Hex(data)
			if test.trust != "" {
				if got := w.install(dir, test.req); !strings.HasPrefix(got.Trust, test.trust) {
					t.Errorf("got %+v", got)
				}
				return
			}
			req := w.place(dir)
			test.req(&req)
			w.refused(req, pluginapi.CodePluginUntrusted, test.says)
		})
	}
}

func TestQuestion(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	req := w.place(w.release("acme", "1.0.0", "stranger", nil))
	var asked Question
	req.Ask = func(q Question) bool { asked = q; return false }
	w.refused(req, pluginapi.CodePluginUntrusted)
	if asked.Name != "acme" || asked.Version != "1.0.0" || len(asked.SHA256) != 64 || len(asked.Signer) < 12 || asked.Source == "" {
		t.Errorf("asked %+v", asked)
	}
}

func TestTamperedRelease(t *testing.T) {
	t.Parallel()
	flip := func(dir, file string, at int) {
		path := filepath.Join(dir, file)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if at < 0 {
			at += len(data)
		}
		data[at] ^= 1
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	archive := ArchiveName("acme", "1.0.0", Platform())
	untrusted, invalid := pluginapi.CodePluginUntrusted, pluginapi.CodePluginInvalid
	for _, test := range []struct {
		name string
		make func(w *workshop) Request
		code pluginapi.Code
		says string
	}{
		{"archive", func(w *workshop) Request {
			dir := w.release("acme", "1.0.0", "acme", nil)
			flip(dir, archive, 200)
			return w.place(dir)
		}, untrusted, "wrong SHA-256 sum"},
		{"archive, unsigned, sum given", func(w *workshop) Request {
			dir := w.release("acme", "1.0.0", "", nil)
			data, _ := os.ReadFile(filepath.Join(dir, archive))
			flip(dir, archive, -1)
			_ = os.Remove(filepath.Join(dir, SumsName))
			req := w.place(filepath.Join(dir, archive))
			req.SHA256 = sha256Hex(data)
			return req
		}, untrusted, "wrong SHA-256 sum"},
		{"SHA256SUMS, a hash", func(w *workshop) Request {
			dir := w.release("acme", "1.0.0", "acme", nil)
			data, _ := os.ReadFile(filepath.Join(dir, SumsName))
			to := byte('0')
			if data[0] == to {
				to = '1'
			}
			w.must(os.WriteFile(filepath.Join(dir, SumsName), append([]byte{to}, data[1:]...), 0o644))
			return w.place(dir)
		}, untrusted, "signature of acme over SHA256SUMS is wrong"},
		{"SHA256SUMS, no hash any more", func(w *workshop) Request {
			dir := w.release("acme", "1.0.0", "acme", nil)
			flip(dir, SumsName, 64)
			return w.place(dir)
		}, invalid, "SHA256SUMS:1"},
		{"signature", func(w *workshop) Request {
			dir := w.release("acme", "1.0.0", "acme", nil)
			sig, _ := os.ReadFile(filepath.Join(dir, SignatureName))
			at := bytes.IndexByte(sig, '\n') + 51
			if sig[at]++; !strings.ContainsRune("BCDEFGHIJKLMNOPQRSTUVWXYZbcdefghijklmnopqrstuvwxyz123456789", rune(sig[at])) {
				sig[at] = 'A' // another letter of base64
			}
			w.must(os.WriteFile(filepath.Join(dir, SignatureName), sig, 0o644))
			return w.place(dir)
		}, untrusted, "the signature of acme over SHA256SUMS is wrong"},
		{"signature, its trusted comment", func(w *workshop) Request {
			dir := w.release("acme", "1.0.0", "acme", nil)
			sig, _ := os.ReadFile(filepath.Join(dir, SignatureName))
			w.must(os.WriteFile(filepath.Join(dir, SignatureName), bytes.Replace(sig, []byte("acme 1.0.0"), []byte("acme 1.0.1"), 1), 0o644))
			return w.place(dir)
		}, untrusted, "is wrong"},
		{"malformed signature", func(w *workshop) Request {
			dir := w.release("acme", "1.0.0", "acme", nil)
			w.must(os.WriteFile(filepath.Join(dir, SignatureName), []byte("signed, honestly\n"), 0o644))
			return w.place(dir)
		}, untrusted, "no signature of minisign"},
		{"signature of another version", func(w *workshop) Request {
			dir := w.release("acme", "1.0.0", "acme", nil)
			sums, _ := os.ReadFile(filepath.Join(dir, SumsName))
			w.must(os.WriteFile(filepath.Join(dir, SignatureName), Sign(w.key("acme"), "acme", "0.9.0", sums), 0o644))
			return w.place(dir)
		}, untrusted, `signed as "amux-plugin acme 0.9.0"`},
		{"signature of another plugin", func(w *workshop) Request {
			dir := w.release("acme", "1.0.0", "acme", nil)
			sums, _ := os.ReadFile(filepath.Join(dir, SumsName))
			w.must(os.WriteFile(filepath.Join(dir, SignatureName), Sign(w.key("acme"), "acme-other", "1.0.0", sums), 0o644))
			return w.place(dir)
		}, untrusted, `signed as "amux-plugin acme-other 1.0.0"`},
		{"a wrong signature is refused whatever is required", func(w *workshop) Request {
			dir := w.release("acme", "1.0.0", "acme", nil)
			sums, _ := os.ReadFile(filepath.Join(dir, SumsName))
			w.must(os.WriteFile(filepath.Join(dir, SignatureName), Sign(w.key("acme"), "acme", "0.9.0", sums), 0o644))
			req := w.place(dir)
			req.Require = RequireNone
			return req
		}, untrusted, "signed as"},
		{"manifest in the archive is not the one that was signed", func(w *workshop) Request {
			all := files("acme", "1.0.0")
			signed := *all[ManifestName]
			all[ManifestName].Data = append(all[ManifestName].Data, "# more\n"...)
			return w.place(w.releaseOf("acme", "1.0.0", "acme", packed(w.t, all), &signed))
		}, invalid, "is not the one that SHA256SUMS names"},
		{"manifest of another version", func(w *workshop) Request {
			return w.place(w.release("acme", "1.0.0", "acme", func(all map[string]*PackFile) { all[ManifestName] = files("acme", "2.0.0")[ManifestName] }))
		}, invalid, "its manifest is that of acme 2.0.0"},
		{"describe.json says other things than the executable", func(w *workshop) Request {
			return w.place(w.release("acme", "1.0.0", "acme", func(all map[string]*PackFile) {
				all[DescribeName].Data = bytes.Replace(all[DescribeName].Data, []byte("an agent"), []byte("an angel"), 1)
			}))
		}, invalid, "describe.json is not what"},
		{"describe.json of another plugin", func(w *workshop) Request {
			return w.place(w.release("acme", "1.0.0", "acme", func(all map[string]*PackFile) { all[DescribeName] = files("other", "1.0.0")[DescribeName] }))
		}, invalid, "describes itself as other 1.0.0"},
		{"agents that the manifest does not name", func(w *workshop) Request {
			return w.place(w.release("acme", "1.0.0", "acme", func(all map[string]*PackFile) {
				all[ManifestName].Data = append(all[ManifestName].Data, "[[agent]]\nid = \"second\"\n"...)
			}))
		}, invalid, "the manifest has the agents acme, second, the plugin acme"},
		{"archive under another's name", func(w *workshop) Request {
			return w.place(w.releaseOf("acme", "1.0.0", "acme", packed(w.t, files("evil", "1.0.0")), nil))
		}, invalid, "holds no amux-plugin-acme"},
		{"SHA256SUMS of another release", func(w *workshop) Request {
			dir := w.release("acme", "1.0.0", "acme", nil)
			other := w.release("acme", "0.9.0", "acme", nil)
			data, _ := os.ReadFile(filepath.Join(other, SumsName))
			w.must(os.WriteFile(filepath.Join(dir, SumsName), data, 0o644))
			return w.place(filepath.Join(dir, archive))
		}, untrusted, "is of acme 0.9.0"},
		{"describe hangs", func(w *workshop) Request {
			return w.place(w.release("acme", "1.0.0", "acme", func(all map[string]*PackFile) {
				all[ExecutableName("acme", Platform())].Data = []byte("#!/bin/sh\nsleep 100 & sleep 100\n")
			}))
		}, invalid, "did not end within 5s"},
		{"describe fails", func(w *workshop) Request {
			return w.place(w.release("acme", "1.0.0", "acme", func(all map[string]*PackFile) {
				all[ExecutableName("acme", Platform())].Data = []byte("#!/bin/sh\necho broken >&2; exit 7\n")
			}))
		}, invalid, "exit status 7: broken"},
		{"describe floods", func(w *workshop) Request {
			return w.place(w.release("acme", "1.0.0", "acme", func(all map[string]*PackFile) {
				all[ExecutableName("acme", Platform())].Data = []byte("#!/bin/sh\nhead -c 9000000 /dev/zero\n")
			}))
		}, invalid, "prints more than 4 MiB"},
		{"other protocol", func(w *workshop) Request {
			return w.place(w.release("acme", "1.0.0", "acme", func(all map[string]*PackFile) {
				all[ManifestName].Data = bytes.Replace(all[ManifestName].Data, []byte("[1]"), []byte("[3]"), 1)
			}))
		}, pluginapi.CodePluginIncompatible, "speaks protocol 3; this amux speaks 1"},
		{"newer manifest", func(w *workshop) Request {
			return w.place(w.release("acme", "1.0.0", "acme", func(all map[string]*PackFile) {
				all[ManifestName].Data = bytes.Replace(all[ManifestName].Data, []byte("manifest = 1"), []byte("manifest = 2"), 1)
			}))
		}, pluginapi.CodePluginIncompatible, "needs a newer amux"},
		{"manifest with a wrong type", func(w *workshop) Request {
			return w.place(w.release("acme", "1.0.0", "acme", func(all map[string]*PackFile) {
				all[ManifestName].Data = bytes.Replace(all[ManifestName].Data, []byte(`license = "MIT"`), []byte(`license = 7`), 1)
			}))
		}, invalid, "amux-plugin.toml:5"},
		{"no build for this platform", func(w *workshop) Request {
			dir := w.release("acme", "1.0.0", "acme", nil)
			data, _ := os.ReadFile(filepath.Join(dir, archive))
			sums := Sums{ArchiveName("acme", "1.0.0", "plan9/arm64"): sha256Hex(data), ArchiveName("acme", "1.0.0", "aix/ppc64"): sha256Hex(data)}
			w.must(os.WriteFile(filepath.Join(dir, SumsName), sums.Bytes(), 0o644))
			w.must(os.WriteFile(filepath.Join(dir, SignatureName), Sign(w.key("acme"), "acme", "1.0.0", sums.Bytes()), 0o644))
			return w.place(dir)
		}, pluginapi.CodePluginNotFound, "there are: aix/ppc64, plan9/arm64"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkshop(t)
			w.trust("acme", "acme", "acme-*")
			w.refused(test.make(w), test.code, test.says)
			// Nor is what was there before touched.
			old := newWorkshop(t)
			old.keys = w.keys
			old.trust("acme", "acme", "acme-*")
			req := test.make(old)
			older := old.release("acme", "0.5.0", "acme", nil)
			if strings.Contains(test.name, "another release") || strings.Contains(test.name, "unsigned") || strings.Contains(test.name, "hangs") {
				return // it has made another release beside, or fails for another reason
			}
			old.install(older)
			req.Replace = true
			old.refused(req, test.code, test.says)
			old.verify("acme", "0.5.0")
		})
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) *workshop {
		w := newWorkshop(t)
		w.trust("acme", "acme")
		w.trust("heir", "acme")
		w.install(w.release("acme", "1.1.0", "acme", nil))
		return w
	}
	t.Run("older", func(t *testing.T) {
		w := start(t)
		// Another folder is another source; that is looked at first.
		dir := w.release("acme", "1.0.0", "acme", nil)
		req := w.place(dir)
		w.refused(req, pluginapi.CodePluginUntrusted, "is installed from", "--replace")
		req.Replace = true
		w.refused(req, pluginapi.CodePluginUntrusted, "is older than 1.1.0", "--allow-downgrade")
		w.install(dir, func(r *Request) { r.Replace, r.AllowDowngrade = true, true })
		result, err := w.installer().Rollback("acme")
		if err != nil || result.Version != "1.1.0" {
			t.Fatalf("%+v, %v", result, err)
		}
		w.verify("acme", "1.1.0")
	})
	t.Run("other signer", func(t *testing.T) {
		w := start(t)
		dir := w.release("acme", "1.2.0", "heir", nil)
		req := w.place(dir)
		req.Replace = true
		w.refused(req, pluginapi.CodePluginUntrusted, "is signed by heir", "--accept-signer")
		w.install(dir, func(r *Request) { r.Replace, r.AcceptSigner = true, true })
	})
	t.Run("signed no more", func(t *testing.T) {
		w := start(t)
		dir := w.release("acme", "1.2.0", "", nil)
		req := w.place(dir)
		req.Replace, req.Require = true, RequireNone
		w.refused(req, pluginapi.CodePluginUntrusted, "is signed by nobody", "--accept-signer")
	})
	t.Run("same version, other bytes", func(t *testing.T) {
		w := start(t)
		dir := w.release("acme", "1.1.0", "acme", func(all map[string]*PackFile) { all["LICENSE"].Data = []byte("other\n") })
		w.refused(w.place(dir), pluginapi.CodePluginUntrusted, "wrong SHA-256 sum")
		removed, err := w.installer().Remove("acme", "")
		if err != nil || len(removed) != 1 {
			t.Fatal(removed, err)
		}
		w.install(dir)
	})
	t.Run("orphan of the same version, other bytes", func(t *testing.T) {
		w := start(t)
		w.must(os.Remove(w.installer().LockFile())) // as a kill before the lock leaves it
		dir := w.release("acme", "1.1.0", "acme", func(all map[string]*PackFile) { all["LICENSE"].Data = []byte("other\n") })
		w.refused(w.place(dir), pluginapi.CodePluginUntrusted, "in the store already", "amux plugin remove acme --version 1.1.0")
		_, err := w.installer().Remove("acme", "1.1.0")
		w.must(err)
		w.install(dir)
	})
	t.Run("broken files are mended", func(t *testing.T) {
		w := start(t)
		exe := filepath.Join(storePath(w.dir, "acme", "1.1.0", Platform()), ExecutableName("acme", Platform()))
		w.must(os.Remove(exe))
		w.must(os.WriteFile(exe, []byte("evil"), 0o755))
		w.install(filepath.Join(w.dist, "acme", "1.1.0"))
	})
	t.Run("linked folder", func(t *testing.T) {
		w := start(t)
		dir := filepath.Join(w.dist, "work")
		w.must(os.MkdirAll(dir, 0o755))
		w.must(os.WriteFile(filepath.Join(dir, ManifestName), files("acme", "0.0.1")[ManifestName].Data, 0o644))
		req := w.place(dir)
		w.refused(req, pluginapi.CodePluginUntrusted, "--replace")
		w.install(dir, func(r *Request) { r.Replace = true })
		w.refused(w.place(filepath.Join(w.dist, "acme", "1.1.0")), pluginapi.CodePluginUntrusted, "is linked to")
		req.Require = RequireSignature
		w.refused(req, pluginapi.CodePluginUntrusted, "signatures are required")
		if _, err := w.installer().Upgrade(context.Background(), "acme", Request{}); err == nil || !strings.Contains(err.Error(), "is linked to") {
			t.Error(err)
		}
	})
	t.Run("dry run", func(t *testing.T) {
		w := start(t)
		before := w.snapshot()
		req := w.place(w.release("acme", "2.0.0", "acme", nil))
		req.DryRun, req.Replace = true, true
		result, err := w.installer().Install(context.Background(), req)
		if err != nil || result.Version != "2.0.0" || w.snapshot() != before {
			t.Errorf("%+v, %v", result, err)
		}
	})
	t.Run("pinned", func(t *testing.T) {
		w := start(t)
		_, err := w.installer().Upgrade(context.Background(), "acme", Request{})
		oneLine(t, err, pluginapi.CodeValidation, "is pinned")
	})
	t.Run("no exec", func(t *testing.T) {
		w := start(t)
		dir := w.release("fine", "1.0.0", "heir", func(all map[string]*PackFile) {
			all[ExecutableName("fine", Platform())].Data = []byte("#!/bin/sh\nexit 1\n")
		})
		w.install(dir, func(r *Request) { r.NoExec, r.Require = true, RequireNone })
	})
	t.Run("canceled", func(t *testing.T) {
		w := start(t)
		before := w.snapshot()
		ctx, cancel := context.WithCancel(context.Background())
		req := w.place(w.release("acme", "2.0.0", "acme", nil))
		req.Replace = true
		w.opts.Fault = func(step string) error {
			if step == "archive part" {
				cancel()
			}
			return nil
		}
		if _, err := w.installer().Install(ctx, req); err != context.Canceled {
			t.Errorf("got %v", err)
		}
		if w.snapshot() != before {
			t.Error("something has changed")
		}
	})
}

// What is tampered with after the installation is named, by verify.
func TestTamperedStore(t *testing.T) {
	t.Parallel()
	replace := func(path, content string) {
		_ = os.Remove(path)
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name string
		harm func(w *workshop, dir string)
		says string
	}{
		{"executable, size and mtime restored", func(w *workshop, dir string) {
			exe := filepath.Join(dir, ExecutableName("acme", Platform()))
			info, _ := os.Stat(exe)
			data, _ := os.ReadFile(exe)
			data[len(data)-2] ^= 1
			replace(exe, string(data))
			w.must(os.Chtimes(exe, info.ModTime(), info.ModTime()))
		}, "modified: amux-plugin-acme"},
		{"manifest", func(w *workshop, dir string) { replace(filepath.Join(dir, ManifestName), "x") }, "modified: amux-plugin.toml"},
		{"describe.json", func(w *workshop, dir string) { replace(filepath.Join(dir, DescribeName), "{}") }, "modified: describe.json"},
		{"a file is missing", func(w *workshop, dir string) { _ = os.Remove(filepath.Join(dir, "docs/guide.md")) }, "missing: docs/guide.md"},
		{"a file too many", func(w *workshop, dir string) { replace(filepath.Join(dir, "docs/more"), "x") }, "extra: docs/more"},
		{"a link in the place of a file", func(w *workshop, dir string) {
			_ = os.Remove(filepath.Join(dir, "LICENSE"))
			w.must(os.Symlink("/etc/passwd", filepath.Join(dir, "LICENSE")))
		}, "no regular file: LICENSE"},
		{"receipt", func(w *workshop, dir string) {
			data, _ := os.ReadFile(filepath.Join(dir, receiptName))
			replace(filepath.Join(dir, receiptName), strings.Replace(string(data), `"LICENSE": "`, `"LICENSE": "0`, 1))
		}, "modified: receipt.json"},
		{"receipt, name of the signer", func(w *workshop, dir string) {
			data, _ := os.ReadFile(filepath.Join(dir, receiptName))
			replace(filepath.Join(dir, receiptName), strings.Replace(string(data), `"signer_name": "acme"`, `"signer_name": "anthropic"`, 1))
		}, "names the signer \"anthropic\""},
		{"no receipt", func(w *workshop, dir string) { _ = os.Remove(filepath.Join(dir, receiptName)) }, "missing: receipt.json"},
		{"SHA256SUMS", func(w *workshop, dir string) { replace(filepath.Join(dir, SumsName), "x") }, "is wrong"},
		{"signature", func(w *workshop, dir string) { replace(filepath.Join(dir, SignatureName), "x") }, "no signature"},
		{"lock, h1", func(w *workshop, dir string) {
			data, _ := os.ReadFile(w.installer().LockFile())
			replace(w.installer().LockFile(), strings.Replace(string(data), `"h1:`, `"h1:x`, 1))
		}, "asks for h1:x"},
		{"lock, signer", func(w *workshop, dir string) {
			data, _ := os.ReadFile(w.installer().LockFile())
			replace(w.installer().LockFile(), strings.Replace(string(data), `signer = "RW`, `signer = "RX`, 1))
		}, "different signers"},
		{"trust withdrawn", func(w *workshop, dir string) { w.must(w.installer().RemoveTrust("acme")) }, "no longer trusted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkshop(t)
			w.trust("acme", "acme")
			result := w.install(w.release("acme", "1.0.0", "acme", nil))
			time.Sleep(60 * time.Millisecond)
			test.harm(w, result.Dir)
			lock, err := ReadLock(w.installer().LockFile())
			w.must(err)
			_, problems := w.installer().Verify(*lock.Get("acme"))
			var all []string
			for _, p := range problems {
				all = append(all, p.String())
			}
			if text := strings.Join(all, "; "); !strings.Contains(text, test.says) {
				t.Errorf("verify says %q, not %q", text, test.says)
			}
		})
	}
}

func TestRemoveAndPrune(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.trust("acme", "acme", "other")
	for _, version := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		w.install(w.release("acme", version, "acme", nil), func(r *Request) { r.Replace = true })
	}
	w.install(w.release("other", "1.0.0", "acme", nil))
	var gone []string
	w.opts.Gone = func(hash string) { gone = append(gone, hash) }
	in := w.installer()
	keep := &Lock{Plugins: []Locked{{Name: "acme", Version: "1.0.0"}}}
	unused, err := in.Prune(keep, true)
	if err != nil || len(unused) != 1 || unused[0].Version != "1.1.0" || unused[0].Size < 1000 {
		t.Fatalf("%+v, %v", unused, err)
	}
	if _, err := in.Prune(keep, false); err != nil {
		t.Fatal(err)
	}
	w.verify("acme", "1.2.0")
	if want := sha256Hex(files("acme", "1.1.0")[ExecutableName("acme", Platform())].Data); len(gone) != 1 || gone[0] != want {
		t.Errorf("gone are %v, want %s", gone, want)
	}
	if _, err := in.Rollback("acme"); err == nil || !strings.Contains(err.Error(), "no version to go back to") {
		t.Errorf("the pruned version is still remembered: %v", err)
	}
	if got := in.storedVersions("acme"); len(got) != 2 {
		t.Errorf("the store has %v", got)
	}
	removed, err := in.Remove("acme", "")
	if err != nil || len(removed) != 2 {
		t.Fatal(removed, err)
	}
	w.verify("other", "1.0.0")
	if len(gone) != 3 {
		t.Errorf("gone are %v", gone)
	}
	_, err = in.Remove("acme", "")
	oneLine(t, err, pluginapi.CodePluginNotFound, "acme is not installed")
}
