package acp

import (
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
)

// ignored are updates that are known and give no event, with the reason.
var ignored = map[string]string{
	"user_message_chunk": "our own prompt come back, or the past of a session",
}

// update handles a session/update; false means that it is not known.
func (c *conversation) update(params jsonl.Value, out *sdk.Out) bool {
	update := params.Get("update")
	kind := string(update.Bytes("sessionUpdate"))
	c.opening.heard(out)
	switch kind {
	case "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan":
		if !c.Busy() {
			return true // the past of a session, or what setting a mode makes it say
		}
		c.said = true
	}
	switch kind {
	case "agent_message_chunk":
		return c.message(update, out)
	case "agent_thought_chunk":
		if !update.IsString("content", "text") {
			return false
		}
		thought := update.Text("content", "text")
		if c.config.Words.Thought != nil {
			thought = c.config.Words.Thought(thought)
		}
		c.Main().Think(thought, out)
	case "tool_call", "tool_call_update":
		if !c.questions.ids[update.Text("toolCallId")] { // how a question ended
			c.tools.update(update, out)
		}
	case "plan":
		items := []pluginapi.TodoItem{}
		for _, entry := range update.Items("entries") {
			items = append(items, pluginapi.TodoItem{Text: entry.Text("content"), Status: entry.Text("status")})
		}
		out.Event(pluginapi.TodoUpdate{Items: items})
	case "current_mode_update":
		c.settings.modeIs(update.Text("currentModeId"), out)
	case "config_option_update":
		c.settings.take(update)
		c.settings.modeIs(c.settings.value("mode"), out)
	case "session_info_update":
		if title := update.Text("title"); title != c.title && c.Busy() {
			c.title = title
			out.Event(pluginapi.SessionTitle{Title: title})
		}
	case "available_commands_update":
		return c.opening.commands.update(update, out)
	case "usage_update":
		c.spending.update(update, out)
	case "notice":
		c.notice(update, out)
	case "compaction_summary_chunk":
		c.summary += update.Text("content", "text")
	case "compaction_update":
		c.compaction(update, out)
	default:
		_, known := ignored[kind]
		return known
	}
	return true
}

// notice is what the agent tells its user, beside the conversation.
func (c *conversation) notice(update jsonl.Value, out *sdk.Out) {
	text := update.Text("title")
	if more := update.Text("description"); more != "" {
		text += ": " + more
	}
	level := "info"
	if severity := update.Text("severity"); severity == "warning" || severity == "error" {
		level = "warn"
	}
	out.Event(pluginapi.Debug{Level: level, Message: text})
}

// compaction is a conversation that is made shorter.
func (c *conversation) compaction(update jsonl.Value, out *sdk.Out) {
	switch update.Text("status") {
	case "completed":
		for _, block := range update.Items("summary") {
			c.summary += block.Text("text")
		}
		out.Event(pluginapi.ContextCompacted{Summary: c.summary})
	case "failed":
		out.Event(pluginapi.Debug{Level: "warn", Message: "compaction: " + update.Text("error")})
	case "in_progress":
		return
	}
	c.summary = ""
}

func (c *conversation) message(update jsonl.Value, out *sdk.Out) bool {
	content := update.Get("content")
	if c.config.Usage.Chunk != nil {
		if u, ok := c.config.Usage.Chunk(update); ok {
			out.Event(u)
		}
	}
	switch content.Text("type") {
	case "text":
	case "image":
		out.Event(pluginapi.ImageOutput{MimeType: content.Text("mimeType"), Base64: content.Text("data")})
		return true
	case "audio":
		out.Event(pluginapi.Debug{Level: "info", Message: "the agent answers with sound (" + content.Text("mimeType") + "), which amux leaves out"})
		return true
	case "resource_link", "resource":
	default:
		return false
	}
	text := content.Text("text")
	switch content.Text("type") {
	case "resource_link":
		text = "[" + content.Text("name") + "](" + content.Text("uri") + ")"
	case "resource":
		if text = content.Text("resource", "text"); text == "" {
			text = content.Text("resource", "uri")
		}
	}
	if text == "" {
		return true
	}
	if c.config.Words.Aside != nil {
		if event, aside := c.config.Words.Aside(text); aside {
			if retry, again := event.(pluginapi.Retry); again {
				c.Main().Abandon(retry.Reason, out)
			}
			if event != nil {
				out.Event(event)
			}
			return true
		}
	}
	if c.config.Words.Error != nil {
		if o := c.config.Words.Error(text); o != nil {
			c.errorText = o
			return true
		}
	}
	c.Main().Text(update.Text("messageId"), text, out)
	return true
}
