package spawn

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
)

// batchSpecial is what cmd.exe reads as more than text in the arguments of a batch
// file, quotes or not.
const batchSpecial = "\"%^&|<>!()\r\n"

// isBatch reports whether a program is one that cmd.exe runs.
func isBatch(program string) bool {
	return slices.Contains([]string{".cmd", ".bat"}, strings.ToLower(filepath.Ext(program)))
}

// checkBatch refuses arguments of a batch file that cmd.exe could read as commands: no
// quoting is safe from it. Of texts that a person or a model wrote it refuses even
// single words. Other programs take any arguments.
func checkBatch(program string, args []string, texts ...string) error {
	if !isBatch(program) {
		return nil
	}
	for i, arg := range args {
		text := slices.ContainsFunc(texts, func(text string) bool { return text != "" && strings.Contains(arg, text) })
		if text || strings.ContainsAny(arg, batchSpecial) {
			return pluginapi.Errorf(pluginapi.CodeValidation, "argument %d is not safe with %s: cmd.exe, which runs it, would read it as commands",
				i+1, filepath.Base(program)).
				WithHint("have the program itself in PATH, an .exe, before this launcher; or a driver that takes prompts on stdin")
		}
	}
	return nil
}
