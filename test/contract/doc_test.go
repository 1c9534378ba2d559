// Package contract keeps what other programs rely on: the JSON schemas of events and of
// input lines, which are made from the Go types, the clients' types, which are made from
// the schemas, and the shape that was released, which a change must not break.
package contract

import "flag"

var (
	update = flag.Bool("update", false, "write docs/schema and the clients' types")
	freeze = flag.Bool("freeze", false, "make docs/schema the released shape, docs/schema/v1, if it breaks nothing")
)
