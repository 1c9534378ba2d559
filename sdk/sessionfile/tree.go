package sessionfile

import (
	"context"

	"github.com/amux-dev/amux/sdk/jsonl"
)

// Tree says how lines follow each other.
type Tree struct {
	// ID and Parent are the keys of a line's own id and of the one it follows.
	ID, Parent string
	// Leaf reports whether a line may be the end of the conversation; nil: any.
	Leaf func(jsonl.Value) bool
}

// Visit is told the lines of a branch. Returning false ends the reading.
type Visit struct {
	Line func(jsonl.Value) bool
	// Long is told of lines beyond MaxLine; nil: they are left out.
	Long func(offset, length int64) bool
}

// Read goes through a file in its order: through the branch that ends with its
// last leaf, or with all through everything. Lines without an id belong to every
// branch; what is no JSON object is left out. The file may grow meanwhile: what
// came after the first look is left out too.
func (t Tree) Read(ctx context.Context, path string, all bool, visit Visit) error {
	active, err := t.branch(ctx, path, all)
	if err != nil {
		return err
	}
	lines, err := Open(path)
	if err != nil {
		return err
	}
	defer lines.Close()
	for n := 0; n < len(active) && lines.Next(); n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if !active[n] {
			continue
		}
		if lines.Long {
			if visit.Long != nil && !visit.Long(lines.Offset, lines.Length) {
				return nil
			}
			continue
		}
		doc, err := jsonl.ParseObject(lines.Line)
		if err != nil {
			continue
		}
		more := visit.Line(doc.Value)
		doc.Release()
		if !more {
			return nil
		}
	}
	return lines.Err()
}

// branch marks the lines to be visited.
func (t Tree) branch(ctx context.Context, path string, all bool) ([]bool, error) {
	lines, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer lines.Close()
	var active []bool
	var parents []int32 // line → line it follows; -1: none, or no part of the tree
	var places Index
	leaf, last := int32(-1), int32(-1)
	for n := int32(0); lines.Next(); n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		parent, inTree := int32(-1), false
		if !lines.Long && !all {
			if doc, err := jsonl.ParseObject(lines.Line); err == nil {
				if id := doc.Bytes(t.ID); len(id) > 0 {
					inTree = true
					if above := doc.Bytes(t.Parent); len(above) > 0 {
						var known bool
						if parent, known = places.Get(above); !known {
							parent = last // its line could not be read: the one before it is near
						}
					}
					places.Put(id, n)
					last = n
					if t.Leaf == nil || t.Leaf(doc.Value) {
						leaf = n
					}
				}
				doc.Release()
			}
		}
		active = append(active, !inTree)
		parents = append(parents, parent)
	}
	// A parent comes before its children, so that a loop in a broken file ends.
	for n := leaf; n >= 0; n = parents[n] {
		active[n] = true
		if parents[n] >= n {
			break
		}
	}
	return active, lines.Err()
}
