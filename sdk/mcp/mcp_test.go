package mcp_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/mcp"
)

func TestCheck(t *testing.T) {
	type server = pluginapi.McpServer
	for name, c := range map[string]struct {
		servers []*server
		want    []string
		code    pluginapi.Code
	}{
		"none":       {nil, []string{}, ""},
		"by command": {[]*server{{Name: "a", Command: "srv"}}, []string{"stdio"}, ""},
		"by address": {[]*server{{Name: "a", Url: "http://h/"}, {Name: "b", Url: "http://h/", Transport: "sse"}}, []string{"http", "sse"}, ""},
		"no name":    {[]*server{{Command: "srv"}}, nil, pluginapi.CodeValidation},
		"twice":      {[]*server{{Name: "a", Command: "x"}, {Name: "a", Command: "y"}}, nil, pluginapi.CodeValidation},
		"nothing":    {[]*server{{Name: "a"}}, nil, pluginapi.CodeValidation},
		"no address": {[]*server{{Name: "a", Command: "x", Transport: "http"}}, nil, pluginapi.CodeValidation},
		"unknown":    {[]*server{{Name: "a", Url: "x", Transport: "pigeon"}}, nil, pluginapi.CodeCapability},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := mcp.Check("agent", c.servers)
			if c.code != "" && !errors.Is(err, c.code) || c.code == "" && (err != nil || !slices.Equal(got, c.want)) {
				t.Errorf("got %q, %v; want %q, %s", got, err, c.want, c.code)
			}
		})
	}
}
