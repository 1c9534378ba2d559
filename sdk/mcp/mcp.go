// Package mcp checks the MCP servers that a run asks for, in the words that all
// adapters share. How an agent is told of them is the adapter's.
package mcp

import (
	"strconv"

	"github.com/amux-dev/amux/pluginapi"
)

// The transports.
const (
	Stdio = "stdio"
	HTTP  = "http"
	SSE   = "sse"
)

// Check refuses servers that cannot be started or called, and gives the transport
// of each, in the order of servers: one that is not named is http where there is an
// address and no command. agent is the name for messages.
func Check(agent string, servers []*pluginapi.McpServer) ([]string, error) {
	seen := map[string]bool{}
	transports := make([]string, len(servers))
	for i, s := range servers {
		invalid := func(what string) error {
			return pluginapi.Errorf(pluginapi.CodeValidation, "%s: mcp server %q %s", agent, s.Name, what)
		}
		transport := s.Transport
		if transport == "" {
			transport = Stdio
			if s.Command == "" && s.Url != "" {
				transport = HTTP
			}
		}
		switch {
		case s.Name == "":
			return nil, invalid("has no name")
		case seen[s.Name]:
			return nil, invalid("is named twice")
		case transport != Stdio && transport != HTTP && transport != SSE:
			return nil, pluginapi.Errorf(pluginapi.CodeCapability, "%s cannot do mcp transport %s", agent, strconv.Quote(s.Transport)).
				WithHint("it has stdio, sse and http")
		case transport == Stdio && s.Command == "":
			return nil, invalid("has no command")
		case transport != Stdio && s.Url == "":
			return nil, invalid("has no url")
		}
		seen[s.Name] = true
		transports[i] = transport
	}
	return transports, nil
}
