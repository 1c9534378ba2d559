// Package readbuf lends the buffers into which files that grow are read. A reader takes one of the
// size of what is there to read, and gives it back before it waits for more.
package readbuf

import "sync"

// The sizes there are. Whoever wants more gets it, and it is not kept.
const (
	small  = 4 << 10
	middle = 16 << 10
	large  = 64 << 10
	huge   = 256 << 10
)

var (
	smalls  = sync.Pool{New: func() any { return new([small]byte) }}
	middles = sync.Pool{New: func() any { return new([middle]byte) }}
	larges  = sync.Pool{New: func() any { return new([large]byte) }}
	huges   = sync.Pool{New: func() any { return new([huge]byte) }}
)

// Get returns a buffer with room for n bytes, of any content.
func Get(n int) []byte {
	switch {
	case n <= small:
		return smalls.Get().(*[small]byte)[:]
	case n <= middle:
		return middles.Get().(*[middle]byte)[:]
	case n <= large:
		return larges.Get().(*[large]byte)[:]
	case n <= huge:
		return huges.Get().(*[huge]byte)[:]
	}
	return make([]byte, n)
}

// Put gives back what Get has returned, or a part from its beginning. Nobody may use it any more.
func Put(b []byte) {
	switch b = b[:cap(b)]; len(b) {
	case small:
		smalls.Put((*[small]byte)(b))
	case middle:
		middles.Put((*[middle]byte)(b))
	case large:
		larges.Put((*[large]byte)(b))
	case huge:
		huges.Put((*[huge]byte)(b))
	}
}
