package readbuf

import "testing"

func TestSizes(t *testing.T) {
	for n, want := range map[int]int{0: small, 1: small, small: small, small + 1: middle, middle: middle, middle + 1: large, large: large, large + 1: huge, huge: huge, huge + 1: huge + 1} {
		if b := Get(n); len(b) != want || cap(b) != want {
			t.Errorf("%d bytes: %d with room for %d, not %d", n, len(b), cap(b), want)
		} else {
			Put(b[:n/2])
		}
	}
	Put(nil)
	Put(make([]byte, 10)) // not one of ours: it is not kept
	if len(Get(10)) != small {
		t.Error("another's buffer was lent")
	}
}

// What is lent and given back again and again costs no garbage.
func TestNoGarbage(t *testing.T) {
	for _, n := range []int{100, 10_000, 50_000, 200_000} {
		if each := testing.AllocsPerRun(1000, func() { Put(Get(n)) }); each > 0 {
			t.Errorf("%d bytes: %v allocations each", n, each)
		}
	}
}
