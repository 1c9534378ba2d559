package omp

import (
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/adaptertest"
)

// Of what the real CLI prints two models.
func TestListModels(t *testing.T) {
	const stdout = `{"models":[{"provider":"anthropic","id":"claude-opus-5","selector":"anthropic/claude-opus-5","name":"Claude Opus 5","contextWindow":1000000,"maxTokens":128000,"reasoning":true,"thinking":["low","medium","high","xhigh","max"],"input":["text","image"]},{"provider":"fake","id":"fake-model","selector":"fake/fake-model","name":"Fake"}]}
`
	argv := []string{"omp", "models", "--json"}
	adaptertest.Models(t, Adapter{}, argv, stdout,
		&pluginapi.Model{Id: "anthropic/claude-opus-5", DisplayName: "Claude Opus 5"}, &pluginapi.Model{Id: "fake/fake-model", DisplayName: "Fake"})
	if _, err := (Adapter{}).ListModels(t.Context(), &pluginapi.ModelsQuery{ExecResults: []*pluginapi.ExecResult{{Stdout: []byte("none\n")}}}); err == nil {
		t.Error("what is no JSON is understood")
	}
}
