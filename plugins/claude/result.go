package main

import (
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/failure"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// result handles the line that ends a turn. `subtype` says "success" for every
// failure of the API too, so that is_error and terminal_reason decide.
func (c *conversation) result(line jsonl.Value, out *sdk.Out) {
	o := c.failure(line)
	c.model.cutOff(&c.model.main, out)
	c.CloseTurn(o != nil, out)
	if line.Exists("structured_output") && !line.Bool("is_error") {
		// The answer is no text of the model's but the input of a tool.
		c.model.text("", "", line.Text("result"), false, out)
	}
	cost := c.spent.result(line, out)
	c.Window = c.spent.window
	c.Cost = c.spent.run
	c.TurnEnd(o, cost, out)
	c.apiError, c.retryDelay = "", nil
	c.work.result(line)
	c.settle(out)
}

// failure reads the outcome of a turn; nil is success.
func (c *conversation) failure(line jsonl.Value) *pluginapi.Outcome {
	if !line.Bool("is_error") {
		return nil
	}
	message := line.Text("result")
	if message == "" {
		message = line.Text("errors", "0")
	}
	subtype, reason := line.Text("subtype"), line.Text("terminal_reason")
	outcome := func(code pluginapi.Code, retryable bool) *pluginapi.Outcome {
		if message == "" {
			message = code.Info().Meaning
		}
		return &pluginapi.Outcome{Code: string(code), Message: message, Retryable: retryable}
	}
	switch {
	case subtype == "error_max_turns" || reason == "max_turns":
		return outcome(pluginapi.CodeTurnLimit, false)
	case subtype == "error_max_budget_usd" || reason == "budget_exhausted":
		return outcome(pluginapi.CodeBudgetExceeded, false)
	case strings.HasPrefix(reason, "aborted"):
		return turn.Aborted()
	case reason == "prompt_too_long" || reason == "blocking_limit":
		return outcome(pluginapi.CodeContextExceeded, false)
	case unknownSession(message):
		return outcome(pluginapi.CodeSessionNotFound, false)
	}
	status, _ := line.Int("api_error_status")
	kind := line.Text("api_error_type")
	if kind == "" {
		kind = c.apiError
	}
	if kind == "billing_error" {
		return outcome(pluginapi.CodeBilling, false)
	}
	o := failure.Of(int(status), message)
	if o.Code == string(pluginapi.CodeAgentFailed) {
		// The words say nothing: the CLI's own kind does.
		switch {
		case kind == "authentication_failed" || kind == "authentication_error":
			o = outcome(pluginapi.CodeAuth, false)
		case kind == "overloaded_error":
			o = outcome(pluginapi.CodeOverloaded, true)
		case kind == "rate_limit" || kind == "rate_limit_error":
			o = outcome(pluginapi.CodeRateLimited, true)
		case line.Text("api_error") == "connection_failed" || reason == "api_error" && status == 0 && kind == "server_error":
			o = outcome(pluginapi.CodeNetwork, true)
		}
	}
	if o.Code == string(pluginapi.CodeRateLimited) && c.retryDelay != nil {
		o.RetryAfterMs = uint64(*c.retryDelay)
	}
	return o
}

func unknownSession(message string) bool {
	return strings.Contains(message, "No conversation found") ||
		strings.Contains(message, "--resume requires a valid session")
}
