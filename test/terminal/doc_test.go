// Package terminal drives amux attach as a person does, from a terminal of the
// test's own, and looks at what that shows.
package terminal
