// Package code has the fixed words that programs compare: error codes, and the
// states, reasons, event types and input kinds of a run. It imports nothing, so
// that small programs such as the shim can use it.
//
// Error codes have a type of their own. The other words are untyped constants: they
// fit a string as well as a pluginapi.Type.
package code
