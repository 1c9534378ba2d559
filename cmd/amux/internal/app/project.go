package app

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/amux-dev/amux/internal/sys/foreign"
)

// Project is the folder that a command line is about, if there is one.
type Project struct {
	process *Process
	flags   *Flags
	print   *Printer

	searched bool
	found    string
	ignored  string // a folder of another user that was passed over
	warned   bool
}

// Dir is the flag, the variable, or the nearest folder upwards that holds an .agent-mux
// or .git of this user; empty if there is none. A folder of another user is passed
// over, as git does, because anybody can make /tmp/.agent-mux. To name a folder is to
// trust it.
func (p *Project) Dir(configDir string) string {
	for _, dir := range []string{p.flags.ProjectDir, p.process.Getenv("AGENT_MUX_PROJECT_DIR")} {
		if dir != "" {
			return p.process.Abs(dir)
		}
	}
	if !p.searched {
		p.searched = true
		p.search(configDir)
	}
	return p.found
}

func (p *Project) search(configDir string) {
	for dir := p.process.Cwd; dir != ""; {
		own := filepath.Join(dir, ".agent-mux")
		settings, err := os.Lstat(own)
		switch {
		case err == nil && own != configDir && !p.mine(settings):
			if p.ignored == "" {
				p.ignored = own
			}
		case err == nil && own != configDir:
			p.found = dir
			return
		default:
			if git, err := os.Lstat(filepath.Join(dir, ".git")); err == nil && p.mine(git) {
				p.found = dir
				return
			}
		}
		up := filepath.Dir(dir)
		if up == dir {
			return
		}
		dir = up
	}
}

// mine reports whether a file belongs to this user; for root by sudo, also to the user
// who called sudo.
func (p *Project) mine(info fs.FileInfo) bool {
	uid, known := foreign.Owner(info)
	if !known || uid == os.Getuid() {
		return true
	}
	caller, err := strconv.Atoi(p.process.Getenv("SUDO_UID"))
	return os.Getuid() == 0 && err == nil && uid == caller
}

// WarnIgnored warns once of a folder of another user that was passed over.
func (p *Project) WarnIgnored(configDir string) {
	p.Dir(configDir)
	if p.ignored == "" || p.warned {
		return
	}
	p.warned = true
	owner := ""
	if info, err := os.Lstat(p.ignored); err == nil {
		if uid, known := foreign.Owner(info); known {
			owner = foreign.UserName(uid)
		}
	}
	p.print.Warnf("%s is ignored: it belongs to %s; if you trust it: --project-dir %s", p.ignored, owner, filepath.Dir(p.ignored))
}

// LockFile is the path of the project's plugin lock; empty if there is no project.
func (p *Project) LockFile(configDir string) string {
	project := p.Dir(configDir)
	if project == "" {
		return ""
	}
	return filepath.Join(project, ".agent-mux", "plugins.lock")
}
