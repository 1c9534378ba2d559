package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// checkFolder tries to write to a folder, without creating it.
func checkFolder(what, dir, fix string) finding {
	info, err := os.Stat(dir)
	if os.IsNotExist(err) {
		return finding{Check: what, Status: "ok", Message: dir + " does not exist yet; the first run creates it"}
	}
	if err == nil && !info.IsDir() {
		return finding{Check: what, Status: "fail", Message: dir + " is not a folder", Fix: fix}
	}
	if err == nil {
		var file *os.File
		if file, err = os.CreateTemp(dir, ".doctor-*"); err == nil {
			file.Close()
			err = os.Remove(file.Name())
		}
	}
	if err != nil {
		return finding{Check: what, Status: "fail", Message: fmt.Sprintf("%s is not writable: %v", dir, err), Fix: fix}
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && !app.IsWindows {
		return finding{Check: what, Status: "fail", Message: fmt.Sprintf("%s is open to other users (mode %o)", dir, mode), Fix: "chmod 700 " + dir,
			mend: func() error { return os.Chmod(dir, 0o700) }}
	}
	return finding{Check: what, Status: "ok", Message: dir}
}

// checkOwn checks one of amux's own programs.
func checkOwn(name, path string) finding {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return finding{Check: name, Status: "fail", Message: path + " is missing", Fix: "reinstall amux; from source: make build"}
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 && !app.IsWindows:
		return finding{Check: name, Status: "fail", Message: path + " is not executable", Fix: "chmod +x " + path,
			mend: func() error { return os.Chmod(path, info.Mode().Perm()|0o111) }}
	}
	return finding{Check: name, Status: "ok", Message: path}
}

// checkSandbox sees whether amux run --sandbox works. wanted says that every run asks for it.
func checkSandbox(opts host.Options, wanted bool) finding {
	const name = "sandbox"
	if f := checkOwn(host.SandboxHelper, filepath.Join(filepath.Dir(opts.ShimPath), host.SandboxHelper)); f.Status != "ok" {
		return f
	}
	err := pluginapi.AsError(host.CheckSandbox(context.Background(), opts.Env))
	switch {
	case err == nil:
		return finding{Check: name, Status: "ok", Message: "one can be made (amux run --sandbox)"}
	case wanted:
		return finding{Check: name, Status: "fail", Message: err.Msg + "; config.toml wants it for every run", Fix: err.Hint}
	}
	return finding{Check: name, Status: "note", Message: err.Msg + ": amux run --sandbox does not work", Fix: err.Hint}
}
