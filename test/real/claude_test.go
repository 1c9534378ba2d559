package real

import "github.com/amux-dev/amux/internal/test/toolchain"

var claude = agentRow{
	id: "claude", program: "claude", env: toolchain.Anthropic, read: readAnthropic, shell: "Bash",
}
