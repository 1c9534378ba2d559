package mcpserver

import (
	"slices"
	"strings"
	"testing"

	"github.com/amux-dev/amux/cmd/amux/internal/cli/run"
	"github.com/amux-dev/amux/host"
)

func TestARunGivesNoMoreThanItHas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		caller  host.ApproveMode
		wanted  string
		want    string
		refused string
	}{
		{host.ApproveAuto, "", "ask", ""},
		{host.ApproveAuto, "auto", "auto", ""},
		{host.ApproveAsk, "", "ask", ""},
		{host.ApproveAsk, "auto", "", "more than this run may"},
		{host.ApproveAsk, "rules", "rules", ""},
		{host.ApproveRules, "", "rules", ""},
		{host.ApproveRules, "ask", "", "more than this run may"},
		{host.ApproveDeny, "", "deny", ""},
		{host.ApproveDeny, "rules", "", "more than this run may"},
		{"", "", "deny", ""},
		{"", "ask", "", "more than this run may"},
		{"of a later amux", "", "deny", "more than this run may"},
		{host.ApproveAuto, "yes", "", "invalid approve"},
	} {
		task := run.Task{Approve: c.wanted}
		err := within(&task, host.Permissions{Approve: c.caller, AllowRules: []string{"a"}, DenyRules: []string{"d"}})
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%q for a run with %q: got %v, want %s", c.wanted, c.caller, err, c.refused)
			}
			continue
		}
		if err != nil || task.Approve != c.want || !slices.Equal(task.Deny, []string{"d"}) || (len(task.Allow) > 0) != (c.want == "rules") {
			t.Errorf("%q for a run with %q: got %q, allow %q, deny %q, %v", c.wanted, c.caller, task.Approve, task.Allow, task.Deny, err)
		}
	}
}
