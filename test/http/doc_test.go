// Package http tests amux serve --http with the built programs.
//
// AMUX_TEST_HTTP=1 takes a thousand breaks and a thousand watchers, in place of a few, and
// compares the time that watchers need with and without stalled ones beside them:
//
//	AMUX_TEST_HTTP=1 go test ./test/http -run 'Resume|Watchers' -timeout 60m -v
package http
