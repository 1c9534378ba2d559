package doctor

import (
	"fmt"
	"os"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// checkFolder tries to write to a folder, without creating it.
func checkFolder(what, dir, fix string) finding {
	info, err := os.Stat(dir)
	if os.IsNotExist(err) {
		return finding{what, "ok", dir + " does not exist yet; the first run creates it", ""}
	}
	if err == nil && !info.IsDir() {
		return finding{what, "fail", dir + " is not a folder", fix}
	}
	if err == nil {
		var file *os.File
		if file, err = os.CreateTemp(dir, ".doctor-*"); err == nil {
			file.Close()
			err = os.Remove(file.Name())
		}
	}
	if err != nil {
		return finding{what, "fail", fmt.Sprintf("%s is not writable: %v", dir, err), fix}
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && !app.IsWindows {
		return finding{what, "fail", fmt.Sprintf("%s is open to other users (mode %o)", dir, mode), "chmod 700 " + dir}
	}
	return finding{what, "ok", dir, ""}
}

// checkOwn checks one of amux's own programs.
func checkOwn(name, path string) finding {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return finding{name, "fail", path + " is missing", "reinstall amux; from source: make build"}
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 && !app.IsWindows:
		return finding{name, "fail", path + " is not executable", "chmod +x " + path}
	}
	return finding{name, "ok", path, ""}
}
