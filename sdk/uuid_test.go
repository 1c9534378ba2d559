package sdk_test

import (
	"regexp"
	"testing"

	"github.com/amux-dev/amux/sdk"
)

func TestUUID(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for _, names := range [][]string{{}, {""}, {"a"}, {"a", "b"}, {"ab"}, {"a", "", "b"}} {
		id := sdk.UUID(names...)
		if !form.MatchString(id) || seen[id] || id != sdk.UUID(names...) {
			t.Errorf("%q: %s", names, id)
		}
		seen[id] = true
	}
}
