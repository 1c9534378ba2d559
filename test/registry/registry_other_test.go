//go:build !linux

package registry

import "testing"

func TestHandshake(t *testing.T) {
	t.Skip("no agent of the registry runs without a network namespace, which only Linux has")
}
