package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/amux-dev/amux/internal/sys/foreign"
)

// project is where a command line is given.
type project struct {
	dir     string // empty: there is none
	ignored string // what another user has put where one was looked for
	warned  bool
}

// projectDir is the flag, the variable, or the nearest folder upwards that holds an
// .agent-mux or .git of the user's own; empty if there is none. What is another
// user's is passed over, as git does: anybody can make /tmp/.agent-mux. Who names the
// folder trusts it.
func (s *session) projectDir(configDir string) string {
	for _, dir := range []string{s.projectFlag, s.getenv("AGENT_MUX_PROJECT_DIR")} {
		if dir != "" {
			return s.abs(dir)
		}
	}
	if s.project == nil {
		s.project = s.findProject(configDir)
	}
	return s.project.dir
}

func (s *session) findProject(configDir string) *project {
	found := &project{}
	for dir := s.app.Cwd; dir != ""; {
		own := filepath.Join(dir, ".agent-mux")
		settings, err := os.Lstat(own)
		switch {
		case err == nil && own != configDir && !s.mine(settings):
			if found.ignored == "" {
				found.ignored = own
			}
		case err == nil && own != configDir:
			found.dir = dir
			return found
		default:
			if git, err := os.Lstat(filepath.Join(dir, ".git")); err == nil && s.mine(git) {
				found.dir = dir
				return found
			}
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return found
}

// mine reports whether a file is this user's; for root by sudo, also the user's who
// called it.
func (s *session) mine(info fs.FileInfo) bool {
	uid, known := foreign.Owner(info)
	if !known || uid == os.Getuid() {
		return true
	}
	caller, err := strconv.Atoi(s.getenv("SUDO_UID"))
	return os.Getuid() == 0 && err == nil && uid == caller
}

// warnIgnored says once which folder of another user was passed over.
func (s *session) warnIgnored(configDir string) {
	s.projectDir(configDir)
	p := s.project
	if p == nil || p.ignored == "" || p.warned {
		return
	}
	p.warned = true
	owner := ""
	if info, err := os.Lstat(p.ignored); err == nil {
		if uid, known := foreign.Owner(info); known {
			owner = foreign.UserName(uid)
		}
	}
	s.warnf("%s is ignored: it belongs to %s; if you trust it: --project-dir %s", p.ignored, owner, filepath.Dir(p.ignored))
}
