package render

import (
	"runtime"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// Installed says whether an agent's CLI is installed: its version where it is known.
func Installed(a host.AgentInfo) string {
	switch {
	case !a.PlatformOK:
		return "no build for this platform"
	case !a.Installed:
		return "no"
	case a.Version != "":
		return a.Version
	}
	return "yes"
}

// SignedIn says whether the user is signed in to an agent.
func SignedIn(a host.AgentInfo) string {
	switch {
	case len(a.Auth) == 0:
		return "not needed"
	case a.SignedIn:
		return "yes"
	}
	for _, state := range a.Auth {
		if state.Status == "expired" || state.Status == "unknown" {
			return state.Status
		}
	}
	return "no"
}

// InstallCommand is a way to install an agent's CLI; empty if it is not for this
// platform.
func InstallCommand(i *pluginapi.Install) string {
	text := strings.Join(i.Argv, " ")
	if i.Note != "" {
		text = strings.TrimSpace(text + "  " + i.Note)
	}
	if len(i.Platforms) > 0 {
		here := false
		for _, p := range i.Platforms {
			here = here || p == runtime.GOOS || p == runtime.GOOS+"/"+runtime.GOARCH
		}
		if !here {
			return ""
		}
	}
	return text
}

// Capabilities names those that an agent has, in the order of the protocol.
func Capabilities(c *pluginapi.Capabilities) []string {
	var names []string
	if c == nil {
		return nil
	}
	m := c.ProtoReflect()
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if field.Kind() == protoreflect.BoolKind && m.Get(field).Bool() {
			names = append(names, strings.ReplaceAll(string(field.Name()), "_", " "))
		}
	}
	return names
}
