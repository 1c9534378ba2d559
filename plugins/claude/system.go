package main

import (
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
)

// system handles the lines about the session and the CLI itself.
func (c *conversation) system(line jsonl.Value, out *sdk.Out) bool {
	switch subtype := string(line.Bytes("subtype")); subtype {
	case "init":
		c.init(line, out)
	case "status":
		return c.status(line, out)
	case "api_retry":
		c.retry(line, out)
	case "permission_denied":
		// Refused by a rule or a mode of the CLI's own: nobody was asked.
		id := line.Text("tool_use_id")
		nested := pluginapi.Nested{ParentID: line.Text("parent_tool_use_id")}
		if t := c.Tool(id); t != nil {
			nested.ParentID = t.Parent()
		}
		out.Event(pluginapi.ApprovalDenied{InteractionID: id, Reason: line.Text("message"), Nested: nested})
	case "compact_boundary":
		c.compacted = &pluginapi.ContextCompacted{}
		pre, ok := line.Int("compact_metadata", "pre_tokens")
		if post, ok2 := line.Int("compact_metadata", "post_tokens"); ok && ok2 {
			saved := pre - post
			c.compacted.TokensSaved = &saved
		}
	case "session_title_changed":
		out.Event(pluginapi.SessionTitle{Title: line.Text("title")})
	case "background_tasks_changed":
		c.work.background(line.Len("tasks"))
		c.settle(out)
	case "task_notification":
		c.model.taskEnded(line.Text("tool_use_id"), line.Text("status"), line.Text("summary"), out)
	case "model_fallback", "model_refusal_fallback", "model_refusal_no_fallback", "model_consent_fallback", "informational", "notification", "instruction_size_warning", "session_writes_lost", "mirror_error":
		text := firstText(line, "content", "message", "text", "reason")
		if text == "" {
			_, known := ignored["system/"+subtype]
			return known
		}
		out.Event(pluginapi.Debug{Level: "info", Message: subtype + ": " + text})
	default:
		_, known := ignored["system/"+subtype]
		return known
	}
	return true
}

func firstText(line jsonl.Value, keys ...string) string {
	for _, key := range keys {
		if text := line.Text(key); text != "" {
			return text
		}
	}
	return ""
}

// init begins a turn; the first one begins the session. The slash command /clear
// begins another session in the same process.
func (c *conversation) init(line jsonl.Value, out *sdk.Out) {
	mode := line.Text("permissionMode")
	if id := line.Text("session_id"); id != c.Session || c.sessions == 0 {
		c.Session = id
		first := c.sessions == 0
		c.sessions++
		start := pluginapi.SessionStart{
			SessionID: id, Model: line.Text("model"), Version: line.Text("claude_code_version"),
		}
		if first {
			start.Resumed, start.ForkedFrom = c.resumed, c.forkedFrom
		}
		for _, tool := range line.Items("tools") {
			start.Tools = append(start.Tools, tool.Text())
		}
		out.Event(start)
		if first {
			c.began(line, out)
		}
	} else if mode != c.mode && mode != "" {
		out.Event(pluginapi.ModeChanged{Mode: mode})
	}
	if mode != "" {
		c.mode = mode
	}
	c.turnStart(out)
}

// began tells what is known once the first session has begun.
func (c *conversation) began(line jsonl.Value, out *sdk.Out) {
	switch {
	case c.forks && c.forkedFrom != "":
		out.Event(pluginapi.SessionFork{SessionID: c.Session, ForkedFrom: c.forkedFrom})
	case c.resumed && !c.forks:
		out.Event(pluginapi.SessionResume{SessionID: c.Session})
	}
	for _, plugin := range line.Items("plugins") {
		if plugin.Text("path") == "builtin" {
			continue
		}
		id := plugin.Text("source")
		if id == "" {
			id = plugin.Text("name")
		}
		out.Event(pluginapi.PluginLoaded{PluginID: id, PluginName: plugin.Text("name"), Version: plugin.Text("version")})
	}
	c.offers(line, out)
	for _, server := range line.Items("mcp_servers") {
		switch status := server.Text("status"); status {
		case "connected", "pending", "":
		default:
			// It does not fail the run, but its tools are missing.
			out.Event(pluginapi.Debug{Level: "warn", Message: "mcp server " + strconv.Quote(server.Text("name")) + ": " + status})
		}
	}
}

// maxCommands bounds the skills and slash commands that give events.
const maxCommands = 256

// offers tells which skills and slash commands can be called by name. Every skill is a
// slash command too. Those that need the CLI's own screen, and those for the CLI
// itself, are left out.
func (c *conversation) offers(line jsonl.Value, out *sdk.Out) {
	known := map[string]bool{}
	tell := func(name, source string) {
		if name != "" && !known[name] && len(known) < maxCommands {
			known[name] = true
			out.Event(pluginapi.SkillLoaded{SkillName: name, Source: source})
		}
	}
	for _, skill := range line.Items("skills") {
		tell(skill.Text(), "")
	}
	for _, name := range line.Items("terminal_slash_commands") {
		known[name.Text()] = true
	}
	for _, command := range line.Items("slash_commands") {
		if name := command.Text(); !strings.HasPrefix(name, "__") {
			tell(name, "command")
		}
	}
}

// status says what the CLI does at the moment.
func (c *conversation) status(line jsonl.Value, out *sdk.Out) bool {
	switch string(line.Bytes("status")) {
	case "requesting":
		c.StepStart(out)
	case "compacting":
		// compact_boundary follows when it is done.
	case "":
		switch {
		case line.IsString("permissionMode"):
			if mode := line.Text("permissionMode"); mode != c.mode {
				c.mode = mode
				out.Event(pluginapi.ModeChanged{Mode: mode})
			}
		case line.IsString("compact_result"):
			if result := line.Text("compact_result"); result != "success" {
				out.Event(pluginapi.Debug{Level: "warn", Message: "compaction: " + result + " " + line.Text("compact_error")})
			}
		case !line.IsNull("status"):
			return false
		}
	default:
		return false
	}
	return true
}

// retry is a failed request that the CLI makes again, silently for the model.
func (c *conversation) retry(line jsonl.Value, out *sdk.Out) {
	attempt, _ := line.Int("attempt")
	retry := pluginapi.Retry{
		Attempt: int(attempt), Reason: line.Text("error"), DelayMS: line.IntPtr("retry_delay_ms"),
	}
	if most, ok := line.Int("max_retries"); ok {
		n := int(most)
		retry.MaxAttempts = &n
	}
	status, hasStatus := line.Int("error_status")
	if retry.Reason == "" || retry.Reason == "unknown" {
		retry.Reason = "unknown"
		if hasStatus {
			retry.Reason = "status " + strconv.FormatInt(status, 10)
		}
	}
	c.model.abandon(c.model.draft(line.Text("parent_tool_use_id")), 0, retry.Reason, out)
	out.Event(retry)
	if status == 429 || line.Text("error") == "rate_limit" {
		c.retryDelay = retry.DelayMS
		out.Event(pluginapi.RateLimited{RetryAfterMS: retry.DelayMS})
	}
}

// flushCompacted emits a compaction once its summary is there, or cannot come.
func (c *conversation) flushCompacted(summary string, out *sdk.Out) {
	if c.compacted == nil {
		return
	}
	c.compacted.Summary = summary
	out.Event(*c.compacted)
	c.compacted = nil
}
