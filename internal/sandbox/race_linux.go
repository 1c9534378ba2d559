//go:build race

package sandbox

// dataLimited is false: a program with the race detector maps terabytes, and the
// plugins of a test that was built with it are that test.
const dataLimited = false
