package engine

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// What goes in comes out in the same order, also when the queue is put back to where it was, and
// after a flood it takes little room.
func TestFIFO(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var q fifo[int]
	var want []int
	next := 0
	for round := range 10_000 {
		fill := random.IntN(4)
		if round == 5_000 {
			fill = 5_000
		}
		for range fill {
			q.add(next)
			want = append(want, next)
			next++
		}
		q.add() // nothing
		before := q
		for range random.IntN(q.len() + 1) {
			if q.at(0) != want[0] {
				t.Fatalf("%d comes out, not %d", q.at(0), want[0])
			}
			q.drop()
			want = want[1:]
		}
		if random.IntN(10) == 0 { // what was taken out did not count
			want = slices.Clone(before.all[before.first:])
			q = before
		}
		if q.len() != len(want) {
			t.Fatalf("%d are in the queue, not %d", q.len(), len(want))
		}
	}
	for q.len() > 0 {
		q.drop()
	}
	for i := range 10_000 {
		q.add(i)
		q.drop()
	}
	if cap(q.all) > idleRoom {
		t.Errorf("there is room for %d", cap(q.all))
	}
	if n := testing.AllocsPerRun(1000, func() { q.add(1); q.drop() }); n > 0 {
		t.Errorf("%v allocations for each", n)
	}
}
