package main

import "github.com/amux-dev/amux/pluginapi"

// keys are the variables in which the CLI looks for keys, and whose they are, as its own
// report names them (hermes dump).
var keys = [][2]string{
	{"OPENROUTER_API_KEY", "openrouter"}, {"ANTHROPIC_API_KEY", "anthropic"}, {"ANTHROPIC_TOKEN", "anthropic"},
	{"OPENAI_API_KEY", "openai"}, {"NOUS_API_KEY", "nous"}, {"GOOGLE_API_KEY", "google"}, {"GEMINI_API_KEY", "google"},
	{"COPILOT_GITHUB_TOKEN", "copilot"}, {"GH_TOKEN", "copilot"}, {"GITHUB_TOKEN", "copilot"},
	{"GLM_API_KEY", "zai"}, {"ZAI_API_KEY", "zai"}, {"Z_AI_API_KEY", "zai"},
	{"KIMI_API_KEY", "kimi"}, {"KIMI_CODING_API_KEY", "kimi"}, {"KIMI_CN_API_KEY", "kimi"},
	{"MINIMAX_API_KEY", "minimax"}, {"MINIMAX_CN_API_KEY", "minimax"}, {"DEEPSEEK_API_KEY", "deepseek"},
	{"DASHSCOPE_API_KEY", "alibaba"}, {"HF_TOKEN", "huggingface"}, {"NVIDIA_API_KEY", "nvidia"},
	{"AI_GATEWAY_API_KEY", "ai-gateway"}, {"OPENCODE_ZEN_API_KEY", "opencode-zen"}, {"OPENCODE_GO_API_KEY", "opencode-go"},
	{"KILOCODE_API_KEY", "kilocode"}, {"XAI_API_KEY", "xai"}, {"XIAOMI_API_KEY", "xiaomi"}, {"OLLAMA_API_KEY", "ollama"},
	{"STEPFUN_API_KEY", "stepfun"}, {"ARCEEAI_API_KEY", "arcee"}, {"FIREWORKS_API_KEY", "fireworks"},
}

// authProbes say where keys and logins are looked for.
func authProbes() []*pluginapi.AuthProbe {
	probes := []*pluginapi.AuthProbe{
		{Method: "config_file", Provider: "hermes", File: "${HERMES_HOME:-~/.hermes}/auth.json", Meaning: "signed in with `hermes auth`"},
	}
	for _, key := range keys {
		probes = append(probes, &pluginapi.AuthProbe{Method: "api_key", Provider: key[1], Env: key[0], Meaning: "a key for the provider " + key[1]})
	}
	return append(probes, &pluginapi.AuthProbe{
		Method: "config_file", Provider: "configured", File: "${HERMES_HOME:-~/.hermes}/.env", JsonPath: "keys",
		Meaning: "perhaps keys: its file of variables is there, which amux does not read",
	})
}

// callerEnv are the variables that the CLI may see of its caller's.
func callerEnv() []string {
	names := []string{"HERMES_*"}
	for _, key := range keys {
		names = append(names, key[0])
	}
	return names
}
