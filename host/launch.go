package host

import (
	"github.com/amux-dev/amux/host/internal/policy"
	"github.com/amux-dev/amux/pluginapi"
)

// adapter is the agent that the plugin knows: for one of the user's own, that whose
// adapter drives it.
func (s *RunSpec) adapter() string {
	if s.Launch != nil {
		return s.Launch.Adapter
	}
	return s.Agent
}

func (l *Launch) proto() *pluginapi.Launch {
	if l == nil {
		return nil
	}
	return &pluginapi.Launch{Line: l.Line, Argv: l.Argv}
}

func configError(format string, args ...any) error {
	return pluginapi.Errorf(pluginapi.CodeConfig, format, args...).WithHint("see [agents.NAME] in config.toml")
}

func (s *RunSpec) retry() *policy.Retry { return (*policy.Retry)(s.Retry) }

// judge answers what the run's agent asks; env is the host's.
func (s *RunSpec) judge(env []string) policy.Judge {
	return policy.Judge{Mode: string(s.Approve), Allow: s.AllowRules, Deny: s.DenyRules, Cwd: s.Cwd, Env: env}
}
