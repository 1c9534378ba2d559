package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/authprobe"
)

const (
	loginFile = "${CODEX_HOME:-~/.codex}/auth.json"
	provider  = "openai"
)

var authGuidance = []string{
	"Run `codex login` and sign in with ChatGPT",
	"or run `codex login --with-api-key` and give it a key from https://platform.openai.com",
	"or set CODEX_API_KEY and add --driver exec: app-server does not use it, and nothing of Codex uses OPENAI_API_KEY",
}

// authProbes are the places where app-server looks, the one that wins first.
// CODEX_API_KEY is not one of them: the CLI's exec alone takes it (measured).
func authProbes() []*pluginapi.AuthProbe {
	return []*pluginapi.AuthProbe{
		{Method: "oauth", Provider: provider, File: loginFile, JsonPath: "tokens.access_token", Meaning: "signed in with ChatGPT"},
		{Method: "api_key", Provider: provider, File: loginFile, JsonPath: "OPENAI_API_KEY", Meaning: "a key that `codex login` has kept"},
	}
}

// DetectAuth adds to the probes who is signed in with ChatGPT. The access token
// of such a login expires within days and is renewed by the CLI, so that its
// expiry says nothing.
func (adapter) DetectAuth(_ context.Context, req *pluginapi.AuthRequest) (*pluginapi.AuthResponse, error) {
	caller := req.GetCaller()
	states := authprobe.Evaluate(authProbes(), caller, authprobe.Options{})
	for _, state := range states {
		if state.Status == authprobe.Authenticated && state.Method == "oauth" {
			state.Identity = accountAddress(caller)
		}
	}
	return &pluginapi.AuthResponse{States: states, Guidance: authGuidance}, nil
}

// accountAddress is the address in the login's id token.
func accountAddress(caller *pluginapi.Caller) string {
	var file struct {
		Tokens struct {
			IDToken string `json:"id_token"`
		} `json:"tokens"`
	}
	if !readSmallJSON(loginFile, caller, &file) {
		return ""
	}
	parts := strings.Split(file.Tokens.IDToken, ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return ""
	}
	var claims struct {
		Email string `json:"email"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return ""
	}
	return claims.Email
}

// readSmallJSON reads a regular file of up to 4 MiB; it reports whether it could.
func readSmallJSON(place string, caller *pluginapi.Caller, into any) bool {
	const most = 4 << 20
	path, ok := authprobe.Expand(place, caller)
	if !ok {
		return false
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return false
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, most))
	return err == nil && json.Unmarshal(content, into) == nil
}
