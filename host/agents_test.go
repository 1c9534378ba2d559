//go:build unix

package host_test

import (
	"os"
	"strings"
	"testing"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi/authprobe"
)

// An adapter that detects nothing itself leaves it to its probes.
func TestDetectAuthByProbes(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]string{"": authprobe.Unauthenticated, "top-secret": authprobe.Authenticated} {
		s := agents.NewStage(t, "fake", "healthy")
		options := s.Options()
		options.Env = append(os.Environ(), "FAKE_KEY="+env)
		h, err := host.New(options)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close(t.Context())
		resp, err := h.DetectAuth(t.Context(), "fake")
		if err != nil || len(resp.States) != 1 || resp.States[0].Status != want || len(resp.Guidance) != 1 {
			t.Errorf("%q: %v, %v", env, resp, err)
		}
		if strings.Contains(resp.String(), "top-secret") {
			t.Error("the secret is in the answer")
		}
	}
}
