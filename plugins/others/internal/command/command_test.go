package command

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/adaptertest"
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Config{Adapter: Adapter{}, Plain: true})
}

func FuzzConversation(f *testing.F) { adaptertest.Fuzz(f, Adapter{}) }

func TestPlan(t *testing.T) {
	for _, test := range []struct {
		launch  *pluginapi.Launch
		program string
		args    []string
		shell   bool
		code    pluginapi.Code
	}{
		{&pluginapi.Launch{Line: "a | b"}, "a | b", nil, true, ""},
		{&pluginapi.Launch{Argv: []string{"a", "b c", "$d"}}, "a", []string{"b c", "$d"}, false, ""},
		{nil, "", nil, false, pluginapi.CodeConfig},
	} {
		plan, err := Adapter{}.Plan(t.Context(), &pluginapi.PlanRequest{Launch: test.launch})
		if test.code != "" {
			if e := pluginapi.AsError(err); e == nil || e.Code != test.code {
				t.Errorf("%v: %v, want %s", test.launch, err, test.code)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if plan.Program != test.program || plan.Shell != test.shell || !cmp.Equal(plan.Args, test.args) {
			t.Errorf("%v: %v", test.launch, plan)
		}
	}
}
