package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// apart lists the objects that tell two trees apart, and the trees themselves.
func (g *Git) apart(ctx context.Context, from, to string) (ids []string, err error) {
	var out Limited
	if err := g.OnObjects(ctx, nil, &out, "diff-tree", "-r", "-t", "-z", "--raw", "--no-abbrev", "--no-renames", from, to); err != nil {
		return nil, err
	}
	ids = []string{from, to}
	fields := strings.Split(string(out.Data), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		head := strings.Split(fields[i], " ")
		if len(head) != 5 {
			return nil, errListing
		}
		for j, mode := range []string{strings.TrimPrefix(head[0], ":"), head[1]} {
			if id := head[2+j]; mode != Gitlink && IsID(id) && strings.Trim(id, "0") != "" {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

func lines(ids []string) io.Reader { return strings.NewReader(strings.Join(ids, "\n") + "\n") }

// Keep packs the objects that tell two trees apart into the private folder, so that the
// changes can be shown when the repository has dropped them or is gone. What cannot be
// packed is looked for in the repository.
func (g *Git) Keep(ctx context.Context, from, to string) {
	ids, err := g.apart(ctx, from, to)
	if err == nil && g.OnObjects(ctx, lines(ids), &Limited{}, "pack-objects", "-q", g.Dir+"/objects/pack/pack") == nil {
		_ = g.OnObjects(ctx, nil, &Limited{}, "prune-packed", "-q") // what is left over takes space only
	}
}

// Pack writes a pack of the objects that tell two trees apart.
func (g *Git) Pack(ctx context.Context, from, to string, w io.Writer) error {
	ids, err := g.apart(ctx, from, to)
	if err != nil {
		return err
	}
	return g.OnObjects(ctx, lines(ids), w, "pack-objects", "-q", "--stdout")
}

// Hold makes a private folder for what Unpack takes. It is of no repository.
func Hold(dir string, sha256 bool) error {
	for _, sub := range []string{"objects/info", "objects/pack", "refs/heads"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(sub)), 0o700); err != nil {
			return err
		}
	}
	r := Repository{format: "sha1"}
	if sha256 {
		r.format = "sha256"
	}
	config, err := r.config()
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/none\n", "none": "", "config": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// large is from where git takes an object for one that it need not hold whole.
const large = "core.bigFileThreshold=16m"

// Unpack takes a pack, which may be anything, into the private folder. What its objects would be
// together is bounded, as the files of a tree are.
func (g *Git) Unpack(ctx context.Context, pack io.Reader) error {
	if err := g.OnObjects(ctx, pack, &Limited{}, "-c", large, "index-pack", "--stdin"); err != nil {
		return err
	}
	sizes, w := io.Pipe()
	go func() {
		_ = w.CloseWithError(g.OnObjects(ctx, nil, w, "cat-file", "--batch-all-objects", "--batch-check=%(objectsize)", "--unordered"))
	}()
	defer sizes.Close()
	left := int64(MostBytes)
	for in := bufio.NewScanner(sizes); ; {
		if !in.Scan() {
			return in.Err()
		}
		size, err := strconv.ParseInt(in.Text(), 10, 64)
		if err != nil || size < 0 {
			return errors.New("git cat-file printed something unexpected")
		}
		if left -= size; left < 0 {
			return fmt.Errorf("the files that differ hold more than %d MiB", int64(MostBytes)>>20)
		}
	}
}
