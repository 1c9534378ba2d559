package spawn

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// Bounds of a plan. The system takes about 2 MiB of arguments and environment together;
// what is longer goes to files or stdin.
const (
	maxPlanArgs  = 4096
	maxPlanBytes = 1 << 20 // of arguments, and of the environment that it sets
	maxPlanFiles = 256
	maxPlanState = 16 << 20
	maxSessionID = 4096
	// maxArg is the longest argument that the Linux kernel takes.
	maxArg = 128 << 10
)

// check demands that a plan can be carried out, whatever the plugin meant. The error names
// the field and its value: its author must find it.
func (o Order) check(plan *pluginapi.Plan) error {
	bad := func(field string, value any, format string, args ...any) error {
		text := fmt.Sprint(value)
		if s, ok := value.(string); ok {
			text = fmt.Sprintf("%.80q", s)
		}
		return o.bad("%s %s: %s", field, text, fmt.Sprintf(format, args...))
	}
	words := func(field, value string) error {
		switch {
		case strings.ContainsRune(value, 0):
			return bad(field, value, "it has a NUL byte")
		case !utf8.ValidString(value):
			return bad(field, value, "it is not UTF-8")
		}
		return nil
	}
	if err := words("program", plan.Program); err != nil {
		return err
	}
	switch {
	case plan.Program == "":
		return bad("program", plan.Program, "a plan needs one")
	case len(plan.Program) > maxArg:
		return bad("program", plan.Program, "it has %d bytes; at most %d are taken", len(plan.Program), maxArg)
	case !plan.Shell && !o.begins(plan.Program) && !filepath.IsAbs(plan.Program) &&
		(strings.ContainsAny(plan.Program, `/`+string(filepath.Separator)) || plan.Program == "." || plan.Program == ".."):
		return bad("program", plan.Program, "it must be absolute, or a name that is found in PATH")
	case plan.Cwd != "" && !filepath.IsAbs(plan.Cwd):
		return bad("cwd", plan.Cwd, "it must be absolute")
	case len(plan.Args) > maxPlanArgs:
		return bad("args", len(plan.Args), "at most %d are taken", maxPlanArgs)
	case plan.Stdin < pb.Stdin_STDIN_UNKNOWN || plan.Stdin > pb.Stdin_STDIN_OPEN:
		return bad("stdin", int32(plan.Stdin), "want STDIN_NONE (1), STDIN_PROMPT (2) or STDIN_OPEN (3)")
	case len(plan.Files) > maxPlanFiles:
		return bad("files", len(plan.Files), "at most %d are taken", maxPlanFiles)
	case len(plan.Collect) > maxPlanFiles:
		return bad("collect", len(plan.Collect), "at most %d are taken", maxPlanFiles)
	case len(plan.EnvUnset) > maxPlanArgs:
		return bad("env_unset", len(plan.EnvUnset), "at most %d are taken", maxPlanArgs)
	case len(plan.Warnings) > maxPlanFiles:
		return bad("warnings", len(plan.Warnings), "at most %d are taken", maxPlanFiles)
	case len(plan.State) > maxPlanState:
		return bad("state", len(plan.State), "bytes; at most %d are taken", maxPlanState)
	case len(plan.SessionId) > maxSessionID:
		return bad("session_id", plan.SessionId, "it has %d bytes; at most %d are taken", len(plan.SessionId), maxSessionID)
	case strings.ContainsFunc(plan.SessionId, unicode.IsControl):
		return bad("session_id", plan.SessionId, "it has control characters")
	case len(plan.InitialStdin) > shim.StdinLimit: // it may be the user's own text
		return pluginapi.Errorf(pluginapi.CodeValidation, "agent %s would get %d bytes on its stdin at once; at most %d are taken",
			o.Agent.GetId(), len(plan.InitialStdin), shim.StdinLimit).
			WithHint("shorten the prompt or the files with it; if they are short, report it to the author of plugin %s", o.Plugin)
	}
	if err := words("cwd", plan.Cwd); err != nil {
		return err
	}
	if plan.Cwd != "" && plan.Cwd != o.Cwd {
		switch ok, err := o.Machine.IsFolder(plan.Cwd); {
		case err != nil:
			return err
		case !ok:
			return bad("cwd", plan.Cwd, "there is no such folder")
		}
	}
	size, longest := 0, 0
	for i, arg := range plan.Args {
		field := fmt.Sprintf("args[%d]", i)
		if err := words(field, arg); err != nil {
			return err
		}
		size, longest = size+len(arg)+1, max(longest, len(arg))
	}
	if size-longest > maxPlanBytes { // the longest may be the user's own text: see Prepare
		return bad("args", size, "bytes in all; at most %d are taken", maxPlanBytes)
	}
	size = 0
	for _, name := range slices.Sorted(maps.Keys(plan.EnvSet)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || !utf8.ValidString(name) {
			return bad("env_set", name, "it is no name of a variable")
		}
		if value := plan.EnvSet[name]; strings.ContainsRune(value, 0) { // it may be secret
			return bad("env_set", name, "its value has a NUL byte")
		} else if size += len(name) + len(value) + 2; len(name)+len(value)+2 > maxArg {
			return bad("env_set", name, "its value has %d bytes; the system takes %d", len(value), maxArg)
		}
	}
	if size > maxPlanBytes {
		return bad("env_set", size, "bytes in all; at most %d are taken", maxPlanBytes)
	}
	for _, name := range plan.EnvUnset {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return bad("env_unset", name, "it is no name of a variable")
		}
	}
	seen := map[string]bool{}
	for i, f := range plan.Files {
		field := fmt.Sprintf("files[%d]", i)
		switch {
		case f.GetName() == "" || f.Name == "." || f.Name == ".." || strings.ContainsAny(f.Name, "/\\\x00") || len(f.Name) > 200 || !utf8.ValidString(f.Name):
			return bad(field, f.GetName(), "it must be a plain file name")
		case seen[f.Name]:
			return bad(field, f.Name, "it is there twice")
		}
		seen[f.Name] = true
	}
	for i, path := range plan.Collect {
		field := fmt.Sprintf("collect[%d]", i)
		if err := words(field, path); err != nil {
			return err
		}
		if !filepath.IsAbs(path) {
			return bad(field, path, "it must be absolute")
		}
	}
	return nil
}

// begins reports whether the user's own command, which may be relative to the working
// directory, begins with that program.
func (o Order) begins(program string) bool {
	argv := o.Launch.GetArgv()
	return len(argv) > 0 && argv[0] == program
}
