package command

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/amux-dev/amux/internal/process"
)

// Look is exec.LookPath for a caller's environment and directory. A name
// with a separator is a path; relative entries of PATH are not searched, so that
// a repository cannot bring its own agent.
func Look(name string, env []string, cwd string) string {
	if strings.ContainsRune(name, '/') || strings.ContainsRune(name, filepath.Separator) || filepath.IsAbs(name) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(cwd, name)
		}
		return Executable(name)
	}
	for _, dir := range filepath.SplitList(process.EnvValue(env, "PATH")) {
		if filepath.IsAbs(dir) {
			if path := Executable(filepath.Join(dir, name)); path != "" {
				return path
			}
		}
	}
	return ""
}

// Executable is the program at a path, with the ending that Windows may want; "" if there
// is none.
func Executable(path string) string {
	names := []string{path}
	if runtime.GOOS == "windows" {
		names = []string{path + ".exe", path + ".cmd", path + ".bat", path}
	}
	for _, name := range names {
		info, err := os.Stat(name)
		if err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode().Perm()&0o111 != 0) {
			return name
		}
	}
	return ""
}

// Stamp changes when the file of a program does; "" if there is none.
func Stamp(path string) string {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	info, err := os.Stat(target)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d %d %s", info.Size(), info.ModTime().UnixNano(), target)
}
