package wine

import (
	"testing"

	"golang.org/x/sys/windows"
)

// Here reports whether this is Wine: its ntdll has one function more.
func Here() bool {
	return windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil
}

// Cannot skips a test that Wine cannot pass; what it lacks is the reason.
func Cannot(t *testing.T, lacks string) {
	t.Helper()
	if Here() {
		t.Skip("Wine cannot prove this: " + lacks)
	}
}
