// Package sandbox attacks amux run --sandbox, with the built programs and a user of their
// own: each probe is a way out that somebody has published, or that this design suggests.
// It succeeds without a sandbox, where that is possible, and never in one. The tests are
// skipped where bubblewrap makes no sandbox.
package sandbox
