package run

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"slices"
	"strings"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/sys/foreign"
)

// mcpServers reads one --mcp flag.
func mcpServers(p *app.Process, text string) ([]host.MCPServer, error) {
	name, rest, ok := strings.Cut(text, "=")
	if !ok {
		return mcpFile(p, text)
	}
	rest = strings.TrimSpace(rest)
	if u, err := url.Parse(rest); err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		return []host.MCPServer{{Name: name, Transport: "http", URL: rest}}, nil
	}
	words, err := splitWords(rest)
	if err != nil || name == "" || len(words) == 0 {
		return nil, app.Usagef("invalid --mcp %q: expected NAME=COMMAND ARGS…, NAME=https://… or a JSON file", text)
	}
	return []host.MCPServer{{Name: name, Transport: "stdio", Command: words[0], Args: words[1:]}}, nil
}

// mcpFile reads the file format that agents share: {"mcpServers": {name: …}}.
func mcpFile(p *app.Process, path string) ([]host.MCPServer, error) {
	data, err := foreign.Read(p.Abs(path), foreign.Rule{Limit: app.MaxConfigFile})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, app.Usagef("invalid --mcp %q: no such file", path).WithHint("or give a server as NAME=COMMAND ARGS…")
	}
	if err != nil {
		return nil, fileError("--mcp", path, err)
	}
	var file struct {
		Servers map[string]struct {
			Type      string            `json:"type"`
			Transport string            `json:"transport"`
			Command   string            `json:"command"`
			Args      []string          `json:"args"`
			Env       map[string]string `json:"env"`
			URL       string            `json:"url"`
			Headers   map[string]string `json:"headers"`
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, app.Usagef("invalid --mcp %q: %v", path, err)
	}
	if len(file.Servers) == 0 {
		return nil, app.Usagef("invalid --mcp %q: the file has no mcpServers", path)
	}
	var servers []host.MCPServer
	for name, server := range file.Servers {
		transport := server.Type
		if transport == "" {
			transport = server.Transport
		}
		switch {
		case transport == "" && server.URL != "", transport == "streamable-http":
			transport = "http"
		case transport == "":
			transport = "stdio"
		}
		servers = append(servers, host.MCPServer{Name: name, Transport: transport, Command: server.Command,
			Args: server.Args, Env: server.Env, URL: server.URL, Headers: server.Headers})
	}
	slices.SortFunc(servers, func(a, b host.MCPServer) int { return strings.Compare(a.Name, b.Name) })
	return servers, nil
}

// splitWords splits a command into words; quotes keep words together.
func splitWords(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord := false
	quote := rune(0)
	for _, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ' || r == '\t':
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}
