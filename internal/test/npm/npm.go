// Package npm fetches what a test needs from npm, as a lock file names it.
package npm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// ErrOffline says that the packages are not there and that AMUX_TEST_OFFLINE keeps them from
// being fetched.
var ErrOffline = errors.New("the packages are not in .cache, and AMUX_TEST_OFFLINE is set")

// Install makes sure that work has the node_modules that the package-lock.json of source
// names, and copies of package.json, package-lock.json and the other files of source named.
// No script of a package runs. It does nothing if work has them from before. Two tests that
// install into the same folder wait for each other.
func Install(ctx context.Context, source, work string, others ...string) error {
	names := append([]string{"package.json", "package-lock.json"}, others...)
	hash := sha256.New()
	var files [][]byte
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return err
		}
		hash.Write(data)
		files = append(files, data)
	}
	if err := os.MkdirAll(filepath.Dir(work), 0o755); err != nil {
		return err
	}
	lock := flock.New(work + ".installing")
	if _, err := lock.TryLockContext(ctx, 100*time.Millisecond); err != nil {
		return fmt.Errorf("wait for another test that installs into %s: %w", work, err)
	}
	defer lock.Unlock()
	stamp, want := filepath.Join(work, "stamp"), []byte(hex.EncodeToString(hash.Sum(nil)))
	if have, err := os.ReadFile(stamp); err == nil && bytes.Equal(have, want) {
		return nil
	}
	if os.Getenv("AMUX_TEST_OFFLINE") != "" {
		return ErrOffline
	}
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	for i, name := range names {
		if err := os.WriteFile(filepath.Join(work, name), files[i], 0o644); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir = work
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci (AMUX_TEST_OFFLINE=1 leaves it out): %w\n%s", err, out)
	}
	return os.WriteFile(stamp, want, 0o644)
}
