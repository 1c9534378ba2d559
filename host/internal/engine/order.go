package engine

import "time"

// order is that of inputs, of what the adapter makes of them, and of the items that
// the host makes of records between them. The feeder adds to it, the receiver works it
// off.
type order struct {
	n      uint64       // inputs so far, as of the last flush or item
	sent   uint64       // inputs that were sent
	done   uint64       // inputs that are fully answered
	open   fifo[uint64] // the last input of each batch that is not answered
	stamps fifo[stamp]
	items  []item
	undone []item // done since the mark
}

// stamp is the time of the record that inputs up to n came from.
type stamp struct {
	n    uint64
	time time.Time
}

// item is something the host makes of a record, behind input after.
type item struct {
	after uint64
	time  time.Time
	do    func(time.Time)
}

// fed takes in inputs up to n.
func (o *order) fed(n uint64, fresh []stamp) {
	o.n = n
	o.stamps.add(fresh...)
}

// add puts an item behind the inputs so far.
func (o *order) add(at time.Time, do func(time.Time)) {
	o.items = append(o.items, item{o.n, at, do})
}

// before does the items before input n.
func (o *order) before(n uint64) {
	for len(o.items) > 0 && o.items[0].after < n {
		it := o.items[0]
		o.items = o.items[1:]
		o.undone = append(o.undone, it)
		it.do(it.time)
	}
}

// timeOf is the time of the record that input n came from.
func (o *order) timeOf(n uint64) time.Time {
	for o.stamps.len() > 1 && o.stamps.at(0).n < n {
		o.stamps.drop()
	}
	return o.stamps.at(0).time
}

// answered notes that the inputs up to done are fully answered, and returns how many
// batches are with them.
func (o *order) answered(done uint64) (batches int) {
	o.done = done
	for o.stamps.len() > 1 && o.stamps.at(0).n <= done {
		o.stamps.drop()
	}
	for o.open.len() > 0 && o.open.at(0) <= done {
		o.open.drop()
		batches++
	}
	return batches
}

// retreat goes back to where done inputs were answered.
func (o *order) retreat(done uint64) {
	o.done = done
	o.items = append(o.undone, o.items...)
	o.undone = nil
}
