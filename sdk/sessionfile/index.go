package sessionfile

import "hash/fnv"

// Index knows at which place an id was last met. It keeps hashes of 64 bits and no
// ids, twenty bytes for each, so that a session of a million lines fits into some tens
// of megabytes.
type Index struct {
	hashes []uint64
	places []int32
	slots  []int32 // a hash table of what is above, by linear probing; 0 is free, n is n-1
}

// Put notes the place of an id, in place of an earlier one.
func (x *Index) Put(id []byte, place int32) {
	if 4*(len(x.hashes)+1) > 3*len(x.slots) {
		x.slots = make([]int32, max(1024, 2*len(x.slots)))
		for n, h := range x.hashes {
			*x.slot(h) = int32(n + 1)
		}
	}
	h := Hash(id)
	slot := x.slot(h)
	if *slot != 0 {
		x.places[*slot-1] = place
		return
	}
	x.hashes = append(x.hashes, h)
	x.places = append(x.places, place)
	*slot = int32(len(x.hashes))
}

// Get returns the place of an id.
func (x *Index) Get(id []byte) (place int32, ok bool) {
	if len(x.slots) == 0 {
		return 0, false
	}
	slot := *x.slot(Hash(id))
	if slot == 0 {
		return 0, false
	}
	return x.places[slot-1], true
}

// slot is where a hash is, or would be.
func (x *Index) slot(h uint64) *int32 {
	mask := uint64(len(x.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		if n := x.slots[i]; n == 0 || x.hashes[n-1] == h {
			return &x.slots[i]
		}
	}
}

// Hash is the hash of an id, 0 for none.
func Hash(id []byte) uint64 {
	if len(id) == 0 {
		return 0
	}
	h := fnv.New64a()
	h.Write(id)
	return h.Sum64()
}
