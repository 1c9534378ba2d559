package real

import (
	"time"

	"github.com/amux-dev/amux/internal/test/toolchain"
)

// remoteRow is Claude Code behind another amux: what it can alone, it can there.
var remoteRow = agentRow{
	id: "amux-remote", program: "claude", env: toolchain.Anthropic, read: readAnthropic, shell: "Bash", stores: "claude", with: []string{"claude"}, patience: time.Minute,
}
