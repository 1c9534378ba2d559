package pluginapi

import "github.com/hashicorp/go-plugin"

// Protocol version served by this module. Minor is written into the header of
// the proto file too; a test holds them together.
const (
	ProtocolMajor = 1
	ProtocolMinor = 0
)

// Handshake is go-plugin's check that an executable is an amux plugin at all. It
// is a guard against mistakes, not a secret.
var Handshake = plugin.HandshakeConfig{
	ProtocolVersion:  ProtocolMajor,
	MagicCookieKey:   "AMUX_PLUGIN",
	MagicCookieValue: "adapter",
}

// AdapterService is the name under which go-plugin dispenses the adapter service.
const AdapterService = "adapter"

// SandboxEnv is set among the variables of RunOptions, and for the agent, if the run is in a
// sandbox of amux. Most agents cannot make one of their own inside: those that would should
// not try.
const SandboxEnv = "AMUX_SANDBOX"

// Bridge, as the program of a plan, is the host's own amux-bridge, which runs a server
// and speaks lines.
const Bridge = "amux-bridge"

// LifelineEnv names a file descriptor that the host holds the other end of. The
// plugin exits when it reads end of file from it, so no plugin outlives its host.
const LifelineEnv = "AMUX_PLUGIN_LIFELINE_FD"

// MaxMessage bounds one gRPC message in both directions. go-plugin leaves the
// server at gRPC's 4 MiB, which a batch of pieces can exceed.
const MaxMessage = 64 << 20

// StreamWindow and ConnWindow are HTTP/2 receive windows in bytes, of one run and of
// all. They are fixed because gRPC, left alone, measures the connection with a ping
// for each message, and so wakes both sides twice for each line of an agent.
const (
	StreamWindow = 128 << 10
	ConnWindow   = 1 << 20
)
