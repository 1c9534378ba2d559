//go:build !race

package sandbox

// dataLimited: memory that is mapped can be bounded.
const dataLimited = true
