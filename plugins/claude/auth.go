package main

import (
	"context"
	"encoding/json"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/authprobe"
	"github.com/amux-dev/amux/sdk/sessionfile"
)

const (
	credentialsFile = "${CLAUDE_CONFIG_DIR:-~/.claude}/.credentials.json"
	provider        = "anthropic"
)

var authGuidance = []string{
	"Set ANTHROPIC_API_KEY to a key from https://console.anthropic.com",
	"or run `claude` once and sign in with /login",
	"or run `claude setup-token` (subscription) and set CLAUDE_CODE_OAUTH_TOKEN",
}

// authProbes are the places where the CLI looks, the one that wins first: a key
// in the environment wins over the login file (measured).
func authProbes() []*pluginapi.AuthProbe {
	return []*pluginapi.AuthProbe{
		{Method: "cloud", Provider: "bedrock", Env: "CLAUDE_CODE_USE_BEDROCK", EnvValue: "1", Meaning: "models of Amazon Bedrock, with AWS's own credentials"},
		{Method: "cloud", Provider: "vertex", Env: "CLAUDE_CODE_USE_VERTEX", EnvValue: "1", Meaning: "models of Google Vertex AI, with Google's own credentials"},
		{Method: "api_key", Provider: provider, Env: "ANTHROPIC_API_KEY", Meaning: "a key of the Anthropic API"},
		{Method: "oauth", Provider: provider, Env: "ANTHROPIC_AUTH_TOKEN", Meaning: "a bearer token, as gateways use"},
		{Method: "oauth", Provider: provider, Env: "CLAUDE_CODE_OAUTH_TOKEN", Meaning: "a token of `claude setup-token`"},
		{
			Method: "oauth", Provider: provider, File: credentialsFile,
			JsonPath: "claudeAiOauth.accessToken", ExpiryJsonPath: "claudeAiOauth.expiresAt",
			Meaning: "signed in with /login",
		},
	}
}

// DetectAuth adds to the probes what only this agent's files say: a login that
// has expired renews itself while it has a refresh token, macOS keeps the login
// in its keychain, and the account's address tells people who they are.
func (adapter) DetectAuth(_ context.Context, req *pluginapi.AuthRequest) (*pluginapi.AuthResponse, error) {
	caller := req.GetCaller()
	states := authprobe.Evaluate(authProbes(), caller, authprobe.Options{})
	for _, state := range states {
		if state.Provider != provider {
			continue
		}
		switch {
		case state.Status == authprobe.Expired && renews(caller):
			state.Status = authprobe.Authenticated
		case state.Status == authprobe.Unauthenticated && caller.GetOs() == "darwin":
			state.Status = authprobe.Unknown
			state.Found = "perhaps the keychain, which amux does not read"
		}
		if state.Status == authprobe.Authenticated && state.ExpiresUnixMs != 0 {
			state.Identity = accountAddress(caller)
		}
	}
	// A cloud that was not asked for is not a login that is missing.
	kept := states[:0]
	for _, state := range states {
		if state.Provider == provider || state.Status != authprobe.Unauthenticated {
			kept = append(kept, state)
		}
	}
	return &pluginapi.AuthResponse{States: kept, Guidance: authGuidance}, nil
}

// renews reports whether the login file has a refresh token.
func renews(caller *pluginapi.Caller) bool {
	var file struct {
		ClaudeAiOauth struct {
			RefreshToken string `json:"refreshToken"`
		} `json:"claudeAiOauth"`
	}
	return readSmallJSON(credentialsFile, caller, &file) && file.ClaudeAiOauth.RefreshToken != ""
}

// accountAddress is the address that the CLI has noted beside a login.
func accountAddress(caller *pluginapi.Caller) string {
	var file struct {
		OauthAccount struct {
			EmailAddress string `json:"emailAddress"`
		} `json:"oauthAccount"`
	}
	// CLAUDE_CONFIG_DIR moves this file too, into the folder.
	path := "~/.claude.json"
	if caller.GetEnv()["CLAUDE_CONFIG_DIR"] != "" {
		path = "$CLAUDE_CONFIG_DIR/.claude.json"
	}
	readSmallJSON(path, caller, &file)
	return file.OauthAccount.EmailAddress
}

// readSmallJSON reads a regular file of up to 4 MiB; it reports whether it could.
func readSmallJSON(place string, caller *pluginapi.Caller, into any) bool {
	path, ok := authprobe.Expand(place, caller)
	if !ok {
		return false
	}
	content, err := sessionfile.Read(path, 4<<20)
	return err == nil && json.Unmarshal(content, into) == nil
}
