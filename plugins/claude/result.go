package main

import (
	"math"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/failure"
	"github.com/amux-dev/amux/sdk/jsonl"
)

// result handles the line that ends a turn. `subtype` says "success" for every
// failure of the API too, so that is_error and terminal_reason decide.
func (c *conversation) result(line jsonl.Value, out *sdk.Out) {
	c.results++
	inTurn := c.inTurn()
	c.closeStream(&c.main, true, out)
	c.closeTools(false, "the turn ended before the tool did", out)
	c.withdrawAll(false, out)
	if c.stepOpen {
		c.stepEnd(out)
	}
	if line.Exists("structured_output") && !line.Bool("is_error") {
		// The answer is no text of the model's but the input of a tool.
		c.text("", "", line.Text("result"), false, out)
	}
	cost := c.usage(line, out)

	o := c.failure(line)
	switch {
	case o == nil:
		out.Outcome(&pluginapi.Outcome{})
		c.failed = false
	case o.Code == string(pluginapi.CodeAborted):
		if !c.interrupted {
			out.Event(pluginapi.Interrupted{})
		}
		out.Outcome(o)
		c.failed = true
	default:
		out.Event(failure.Event(o, authGuidance))
		out.Outcome(o)
		c.failed = true
	}
	c.interrupted, c.apiError, c.retryDelay = false, "", nil

	if inTurn {
		out.Event(pluginapi.TurnEnd{TurnIndex: c.turnsEnded, Cost: cost})
		c.turnsEnded++
	}
	for _, uuid := range line.Items("user_message_uuids") {
		c.promptDone(uuid.Text())
	}
	if !c.lifecycles {
		c.pending = nil // an older CLI does not say which prompts a turn was for
	}
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
		message = "the turn was interrupted"
		return outcome(pluginapi.CodeAborted, false)
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

// usage emits what the turn took and returns its cost, nil if that is not known.
// The CLI's totals are cumulative, and a session that goes on begins with those
// of its past: only the difference since the last result is this run's. That
// difference is given whole in the first of several results that come together.
func (c *conversation) usage(line jsonl.Value, out *sdk.Out) *pluginapi.Money {
	total, hasTotal := line.Float("total_cost_usd")
	before := c.costTotal
	if hasTotal {
		c.costTotal = &total
	}
	since := line.Get("model_usage_since_last_result")
	if since.IsObject() {
		c.hasDeltas = true
		cost := 0.0
		known := true
		for model, usage := range since.Fields() {
			if usd, ok := usage.Float("costUSD"); ok {
				cost += usd
			} else {
				known = false
			}
			out.Event(pluginapi.TokenUsage{
				InputTokens:      usage.IntPtr("inputTokens"),
				OutputTokens:     usage.IntPtr("outputTokens"),
				ThinkingTokens:   usage.IntPtr("thinkingTokens"),
				CacheReadTokens:  usage.IntPtr("cacheReadInputTokens"),
				CacheWriteTokens: usage.IntPtr("cacheCreationInputTokens"),
				Model:            model,
			})
		}
		if since.Len() == 0 || !known {
			return nil
		}
		return c.cost(cost, out)
	}
	if c.hasDeltas {
		return nil // it was in an earlier result
	}
	// An older CLI.
	if usage := line.Get("usage"); usage.IsObject() && line.Text("terminal_reason") != "" {
		out.Event(pluginapi.TokenUsage{
			InputTokens:      usage.IntPtr("input_tokens"),
			OutputTokens:     usage.IntPtr("output_tokens"),
			ThinkingTokens:   usage.IntPtr("output_tokens_details", "thinking_tokens"),
			CacheReadTokens:  usage.IntPtr("cache_read_input_tokens"),
			CacheWriteTokens: usage.IntPtr("cache_creation_input_tokens"),
		})
	}
	switch {
	case !hasTotal:
		return nil
	case before != nil && total >= *before:
		return c.cost(total-*before, out)
	case before == nil && c.resumed:
		return nil // what it inherited is not known
	}
	return c.cost(total, out)
}

func (c *conversation) cost(usd float64, out *sdk.Out) *pluginapi.Money {
	// Differences of floating-point sums have noise far below a cent.
	usd = math.Round(usd*1e10) / 1e10
	if usd == 0 {
		return nil
	}
	money := pluginapi.Money{USD: usd}
	out.Event(pluginapi.Cost{Cost: money})
	if c.runCost == nil {
		c.runCost = &pluginapi.Money{}
	}
	c.runCost.USD = math.Round((c.runCost.USD+usd)*1e10) / 1e10
	return &money
}
