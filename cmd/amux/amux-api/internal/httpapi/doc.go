// Package httpapi serves amux over HTTP: everything a run can do, described by an OpenAPI
// document that is made from the types here.
//
// It keeps nothing of runs. Runs are hosted by amux serve; each request reads the record of
// a run, or asks its shim, so that the end of this process costs no run anything, and
// another one goes on where a client left: an event has the number that it has everywhere.
//
// Who may ask is decided in guard.go, before a request gets any further. What may be
// started is bounded by [http] in config.toml.
package httpapi
