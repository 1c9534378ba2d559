package sdk

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
)

// Cannot is the refusal of an option by a plan: it names the agent, the option as a noun,
// and as a hint what is available instead.
func Cannot(agent, option, instead string) error {
	return pluginapi.Errorf(pluginapi.CodeCapability, "%s cannot do %s", agent, option).WithHint("%s", instead)
}

// AddFile adds a file to a plan and returns its path. A plan with files for a request
// without a directory for them is refused.
func AddFile(req *pluginapi.PlanRequest, plan *pluginapi.Plan, name string, content []byte) string {
	plan.Files = append(plan.Files, &pluginapi.PlanFile{Name: name, Content: content})
	return filepath.Join(req.GetTempDir(), name)
}

var portableEfforts = []string{"low", "medium", "high", "max"}

// checkCapabilities refuses the options that the agent's description rules out,
// so that no adapter can forget to. What depends on a driver, or on more than one
// option, is for the adapter's Plan. A limit of turns is not among them: where
// the agent has none, the host counts.
func checkCapabilities(agent *pluginapi.Agent, o *pluginapi.RunOptions) error {
	has := agent.GetCapabilities()
	var levels []string
	for _, effort := range agent.GetEfforts() {
		levels = append(levels, effort.GetLevel())
	}
	files, images := false, false
	for _, attachment := range o.GetAttachments() {
		if strings.HasPrefix(attachment.GetMimeType(), "image/") {
			images = true
		} else {
			files = true
		}
	}
	mode := o.GetSystemPromptMode()
	for _, option := range []struct {
		asked, can bool
		what       string
	}{
		{o.GetResume() != "", has.GetResume(), "resume a session"},
		{o.GetContinueLast(), has.GetContinueLast(), "continue the last session"},
		{o.GetFork(), has.GetFork(), "fork a session"},
		{o.GetNoSession(), has.GetNoSession(), "run without a session"},
		{o.GetConversation(), has.GetMultiTurn(), "take more than one prompt"},
		{o.GetModel() != "", has.GetModel(), "be given a model"},
		{o.GetEffort() != "", len(levels) > 0, "be given an effort"},
		{o.GetSystemPrompt() != "" && (mode == "" || mode == "append"), has.GetSystemAppend(), "add to its system prompt"},
		{o.GetSystemPrompt() != "" && mode == "replace", has.GetSystemReplace(), "replace its system prompt"},
		{len(o.GetAddDirs()) > 0, has.GetAddDirs(), "be given more directories"},
		{len(o.GetMcpServers()) > 0, has.GetMcp(), "be given MCP servers"},
		{o.GetJsonSchema() != "", has.GetJsonSchema(), "answer by a JSON schema"},
		{o.GetMaxBudgetUsd() > 0, has.GetMaxBudget(), "limit its budget"},
		{files, has.GetAttachFiles(), "be given files"},
		{images, has.GetAttachImages() || has.GetAttachFiles(), "be given images"},
		{o.GetPty(), has.GetPtyRequired() || has.GetPtyOptional(), "run in a pseudo-terminal"},
	} {
		if option.asked && !option.can {
			return pluginapi.Errorf(pluginapi.CodeCapability, "%s cannot %s", agent.GetId(), option.what)
		}
	}
	// A word that is no portable level may be one of the agent's own.
	if effort := o.GetEffort(); slices.Contains(portableEfforts, effort) && !slices.Contains(levels, effort) {
		return pluginapi.Errorf(pluginapi.CodeCapability, "%s has no effort %q", agent.GetId(), effort).
			WithHint("it has: %s", strings.Join(levels, ", "))
	}
	if driver := o.GetDriver(); driver != "" && !slices.Contains(agent.GetDrivers(), driver) {
		err := pluginapi.Errorf(pluginapi.CodeCapability, "%s has no driver %q", agent.GetId(), driver)
		if len(agent.GetDrivers()) > 0 {
			return err.WithHint("it has: %s", strings.Join(agent.GetDrivers(), ", "))
		}
		return err
	}
	return checkOptions(agent.GetId(), o)
}

// checkOptions refuses options that make no sense for any agent.
func checkOptions(agent string, o *pluginapi.RunOptions) error {
	invalid := func(what string) *pluginapi.Error {
		return pluginapi.Errorf(pluginapi.CodeValidation, "%s: %s", agent, what)
	}
	switch mode := o.GetSystemPromptMode(); {
	case o.GetResume() != "" && o.GetContinueLast():
		return invalid("resume and continue cannot be used together").
			WithHint("give a session id, or ask for the last session, not both")
	case o.GetFork() && o.GetResume() == "" && !o.GetContinueLast():
		return invalid("fork needs a session to fork from").WithHint("add --resume ID or --continue")
	case slices.Contains(o.GetAllowRules(), "") || slices.Contains(o.GetDenyRules(), ""):
		return invalid("an allow or deny rule is empty").WithHint("a rule is a tool, perhaps with a pattern: Bash(git *)")
	case !slices.Contains([]string{"", "append", "replace"}, mode):
		return Cannot(agent, "system prompt mode "+strconv.Quote(mode), "use append or replace")
	}
	return nil
}
