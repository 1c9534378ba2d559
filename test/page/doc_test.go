// Package page tests the page of amux serve --http in Chromium. make test installs that on
// Debian, for root; elsewhere the test is skipped where there is none.
//
// AMUX_TEST_PICTURE=$PWD/docs/page.png go test ./test/page takes the picture of README. For
// another version of the terminal, change testdata/package.json, run npm install
// --package-lock-only there, and copy the files that sameTerminal names.
package page
