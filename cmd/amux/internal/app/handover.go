package app

import (
	"errors"
	"io/fs"

	"github.com/amux-dev/amux/pluginapi"
)

// HandOver has amux-api do this command line: it links what would make every other
// command start later. On Unix it returns only if that fails.
func (a *App) HandOver() error {
	program := a.Beside(ProgramName("amux-api"))
	env := a.Env
	if a.Print.jsonErrors { // New has taken it out
		env = append(env[:len(env):len(env)], ErrorsVar+"=json")
	}
	err := a.Become(program, a.Args, env)
	if _, ok := errors.AsType[ExitError](err); ok || err == nil {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return pluginapi.Errorf(pluginapi.CodeInternal, "%s is missing", program).
			WithHint("it belongs beside amux: install amux whole, with its package or by make install")
	}
	return pluginapi.Errorf(pluginapi.CodeSpawn, "start %s: %w", program, err)
}
