package sdk

import (
	"crypto/sha1"
	"encoding/hex"
	"strconv"
)

// UUID derives an id from names, in the form of a UUID of version 5. The same names
// give the same id: a conversation that is replayed must ask for what it asked for
// before.
func UUID(names ...string) string {
	hash := sha1.New()
	for _, name := range names {
		hash.Write([]byte(strconv.Itoa(len(name))))
		hash.Write([]byte{':'})
		hash.Write([]byte(name))
	}
	sum := hash.Sum(nil)[:16]
	sum[6] = sum[6]&0x0f | 0x50
	sum[8] = sum[8]&0x3f | 0x80
	b := make([]byte, 0, 36)
	for i, part := range [][]byte{sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, part)
	}
	return string(b)
}
