// Package bubblewrap makes the command that puts a run's agent into a sandbox: what it
// sees, what it may write, and whom it may reach. Bubblewrap builds the sandbox of Linux
// namespaces; amux-sandbox stands around it and within it.
package bubblewrap

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/internal/egress"
	"github.com/amux-dev/amux/pluginapi"
)

// Helper is the program around the sandbox and within it.
const Helper = "amux-sandbox"

// Policy is what the user allows beyond the work folder.
type Policy struct {
	Network []string // All, None, or hosts; empty is All
	Read    []string // absolute paths
	Write   []string // absolute paths
	// Secrets are variables whose values stay outside, as NAME=HOST: the way out puts them
	// into requests to that host, which may be reached.
	Secrets []string
}

// hosts are those that may be reached, unless that is All or None.
func (p Policy) hosts() (hosts []string) {
	if !slices.Equal(p.Network, []string{None}) {
		hosts = slices.Clone(p.Network)
	}
	for _, text := range p.Secrets {
		if _, host, ok := strings.Cut(text, "="); ok && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// The networks that are no list of hosts.
const (
	All  = "all"
	None = "none"
)

// Setting is where a run runs.
type Setting struct {
	Home    string // of the user
	Cwd     string // the work folder, which the agent may write
	Start   string // in it or in TempDir: where the agent starts
	TempDir string // of the run
	// Needs are files and folders in the home that the agent itself reads and writes; those
	// that end in a slash are folders.
	Needs []string
	// Shown are further files and folders that it reads, Dirs folders that it writes.
	Shown, Dirs []string
	Hidden      []string // amux's own folders
	Programs    []string // that run inside
	Path        string   // where programs are looked for
	Secrets     []egress.Secret
	Terminal    bool
	Bubblewrap  string // the program
	Helper      string // amux-sandbox
}

// gone are variables that name sockets of the user's session, which the sandbox hides.
var gone = []string{
	"SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY",
	"XAUTHORITY", "XDG_RUNTIME_DIR", "DOCKER_HOST", "PULSE_SERVER", "TMUX", "STY",
}

// namespaces is what every sandbox has of its own, and cannot leave.
var namespaces = []string{
	"--unshare-user", "--disable-userns", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent", "--cap-drop", "ALL",
}

// Wrap is the command that runs an agent's program in the sandbox, and the agent's
// environment there.
func (p Policy) Wrap(s Setting, program string, args, env []string) (command, environ []string, err error) {
	mounts, err := p.mounts(s)
	if err != nil {
		return nil, nil, err
	}
	around := []string{s.Helper, "around"}
	within := []string{s.Helper, "within"}
	var network []string
	switch {
	case len(p.hosts()) == 0 && len(p.Network) == 0 || slices.Equal(p.Network, []string{All}):
	case len(p.hosts()) == 0:
		network = []string{"--unshare-net"}
	default:
		network = []string{"--unshare-net"}
		socket := filepath.Join(s.TempDir, "out.sock")
		if len(socket) > maxSocket {
			return nil, nil, pluginapi.Errorf(pluginapi.CodeConfig, "the temp folder %s is too long for a socket", s.TempDir).WithHint("set TMPDIR to a shorter one")
		}
		around = append(around, "--socket", socket)
		within = append(within, "--proxy", socket)
		for _, text := range p.hosts() {
			rule, err := egress.ParseRule(text)
			if err != nil {
				return nil, nil, invalid("--sandbox-net: %v", err)
			}
			around = append(around, "--allow", text)
			if port := rule.Local(); port != 0 {
				within = append(within, "--local", strconv.Itoa(int(port)))
			}
		}
	}
	command = slices.Concat(around, []string{"--", s.Bubblewrap}, namespaces, network, mounts, []string{"--chdir", s.Start})
	if !s.Terminal {
		command = append(command, "--new-session")
	}
	command = slices.Concat(command, []string{"--"}, within, []string{"--", program}, args)
	environ = slices.DeleteFunc(slices.Clone(env), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(gone, name)
	})
	if len(s.Secrets) > 0 {
		held, err := json.Marshal(s.Secrets)
		if err != nil {
			return nil, nil, err
		}
		environ = append(environ, egress.SecretsEnv+"="+string(held))
		for name, file := range trust {
			environ = append(environ, name+"="+filepath.Join(s.TempDir, file))
		}
	}
	return command, environ, nil
}

// trust has the variables that tell programs which certificate authority to trust, each with
// the file that amux-sandbox makes for it in the run's temp folder.
var trust = map[string]string{
	"NODE_EXTRA_CA_CERTS": egress.AuthorityFile, "CODEX_CA_CERTIFICATE": egress.BundleFile, "DENO_CERT": egress.AuthorityFile,
	"SSL_CERT_FILE": egress.BundleFile, "REQUESTS_CA_BUNDLE": egress.BundleFile, "CURL_CA_BUNDLE": egress.BundleFile, "GIT_SSL_CAINFO": egress.BundleFile,
	"AWS_CA_BUNDLE": egress.BundleFile,
}

// unprivileged is the first port that a program without rights may listen on, as the one
// in the sandbox does in place of this machine's.
const unprivileged = 1024

// maxSocket is how long the path of a socket may be.
const maxSocket = 107

func invalid(format string, args ...any) *pluginapi.Error {
	return pluginapi.Errorf(pluginapi.CodeValidation, format, args...)
}

// Check refuses what no sandbox can be made of, before anything is started.
func (p Policy) Check(home, cwd string) error {
	for _, text := range p.Network {
		if text == All || text == None {
			if len(p.Network) > 1 {
				return invalid("--sandbox-net %s stands with others", text).WithHint("name hosts, or use %s alone", text)
			}
			continue
		}
		rule, err := egress.ParseRule(text)
		if err != nil {
			return invalid("--sandbox-net: %v", err)
		}
		if port := rule.Local(); port != 0 && port < unprivileged {
			return invalid("--sandbox-net %s: a port of this machine below %d cannot be reached from a sandbox", text, unprivileged).WithHint("have the server listen on a higher port, too")
		}
	}
	for _, text := range p.Secrets {
		name, host, ok := strings.Cut(text, "=")
		rule, err := egress.ParseRule(host)
		switch {
		case !ok || name == "" || err != nil:
			return invalid("invalid --sandbox-secret %q: expected NAME=HOST", text).WithHint("for example: ANTHROPIC_API_KEY=api.anthropic.com")
		case rule.Many():
			return invalid("--sandbox-secret %s: a secret is for one host", text)
		case slices.Equal(p.Network, []string{All}):
			return invalid("--sandbox-secret needs a network of hosts").WithHint("name hosts by --sandbox-net, in place of all")
		}
	}
	for flag, paths := range map[string][]string{"--sandbox-read": p.Read, "--sandbox-write": p.Write} {
		for _, path := range paths {
			if _, err := os.Stat(path); !filepath.IsAbs(path) || err != nil {
				return invalid("%s: there is no %q", flag, path)
			}
		}
	}
	for _, dir := range append([]string{cwd}, p.Write...) {
		if dir == "" { // a worktree that will be made
			continue
		}
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return invalid("the folder %q: %v", dir, err)
		}
		if homeReal, err := filepath.EvalSymlinks(home); err == nil && (real == "/" || within(homeReal, real)) {
			return invalid("a sandbox that may write to %s would protect nothing: your home is there", dir).WithHint("start it in a folder of the project")
		}
	}
	return nil
}

// within reports whether a path is a folder or below it.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// A view is how a path looks inside.
type view int

const (
	hidden view = iota // an empty folder
	readable
	writable
)

// mount shows what is at source at a path of the sandbox.
type mount struct {
	path, source string
	view         view
}

// empty are folders that others use, too, or that hold what is private.
var empty = []string{"/home", "/root", "/tmp", "/var/tmp", "/run", "/mnt", "/media", "/srv"}

// plan collects mounts.
type plan struct{ mounts []mount }

// hides reports whether a path inside is in an empty folder.
func (p *plan) hides(path string) bool {
	return slices.ContainsFunc(p.mounts, func(m mount) bool { return m.view == hidden && within(path, m.path) })
}

// hide empties a folder, if it is there.
func (p *plan) hide(dir string) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || real == "/" || p.hides(real) {
		return
	}
	p.mounts = append(p.mounts, mount{path: real, view: hidden})
}

// show shows a file or folder, where it is and where its links lead, if it is there.
func (p *plan) show(path string, v view) {
	path = filepath.Clean(path)
	real, err := filepath.EvalSymlinks(path)
	if err != nil || real == "/" || !filepath.IsAbs(path) {
		return
	}
	for _, at := range []string{real, path} {
		if v == writable && at == real || p.hides(at) {
			p.mounts = append(p.mounts, mount{at, real, v})
		}
	}
}

// tool shows what a program needs, unless the whole home is in it.
func (p *plan) tool(path, home string) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || home != "" && (within(home, filepath.Clean(path)) || within(home, real)) {
		return
	}
	if own, err := filepath.EvalSymlinks(home); err == nil && within(own, real) {
		return
	}
	p.show(path, readable)
}

// lock makes a path unwritable in a folder that is written, unless it is a link, which may
// lead anywhere.
func (p *plan) lock(path string) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink == 0 {
		p.mounts = append(p.mounts, mount{path, path, readable})
	}
}

// mounts are the arguments of bubblewrap that say what there is inside.
func (p Policy) mounts(s Setting) ([]string, error) {
	var to plan
	for _, dir := range slices.Concat(empty, []string{s.Home}, s.Hidden) {
		to.hide(dir)
	}
	for _, program := range slices.Concat(s.Programs, []string{s.Helper}) {
		for _, path := range support(program, s.Path, 0) {
			to.tool(path, s.Home)
		}
	}
	for dir := range strings.SplitSeq(s.Path, ":") {
		if filepath.IsAbs(dir) {
			to.tool(dir, s.Home)
		}
	}
	to.show("/etc/resolv.conf", readable)
	for _, path := range s.Needs {
		folder := strings.HasSuffix(path, "/")
		if _, err := os.Stat(path); err != nil && folder && within(filepath.Clean(path), s.Home) {
			if err := os.MkdirAll(path, 0o700); err != nil { // else its sessions would be lost
				return nil, pluginapi.Errorf(pluginapi.CodeConfig, "make the folder that the agent needs: %v", err)
			}
		}
		to.show(path, writable)
	}
	for _, path := range slices.Concat(s.Shown, p.Read) {
		to.show(path, readable)
	}
	for _, path := range slices.Concat([]string{s.Cwd, s.TempDir}, s.Dirs, p.Write) {
		to.show(path, writable)
	}
	to.repository(s)
	for _, path := range p.Write { // wins over what is locked
		to.show(path, writable)
	}
	// What is deeper comes later, so that it stands in what is around it.
	slices.SortStableFunc(to.mounts, func(a, b mount) int {
		return cmp.Or(cmp.Compare(strings.Count(a.path, "/"), strings.Count(b.path, "/")), cmp.Compare(a.view, b.view))
	})
	args := []string{"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"}
	for _, path := range []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"} {
		if _, err := os.Stat(path); err == nil { // root may write these without any capability
			args = append(args, "--ro-bind", path, path)
		}
	}
	for _, m := range needed(to.mounts) {
		switch m.view {
		case hidden:
			args = append(args, "--tmpfs", m.path)
		case readable:
			args = append(args, "--ro-bind", m.source, m.path)
		case writable:
			args = append(args, "--bind", m.source, m.path)
		}
	}
	return args, nil
}

// needed leaves out of sorted mounts what those before it show already, and what is locked
// and may be written all the same.
func needed(mounts []mount) (kept []mount) {
	for _, m := range mounts {
		if m.view == readable && slices.Contains(mounts, mount{m.path, m.source, writable}) {
			continue
		}
		around := hidden
		for _, k := range kept { // the last one is the deepest
			if within(m.path, k.path) {
				around = k.view
			}
		}
		link := m.path != m.source
		if m.view != hidden && around != hidden && (link || m.view == around) {
			continue // it is there as it is outside
		}
		kept = append(kept, m)
	}
	return kept
}

// repository keeps the agent from planting what git runs later, outside: hooks and
// settings. In a folder of a work tree the rest of it can be read.
func (p *plan) repository(s Setting) {
	cwd, err := filepath.EvalSymlinks(s.Cwd)
	if err != nil {
		return
	}
	root := cwd
	for {
		if _, err := os.Lstat(filepath.Join(root, ".git")); err == nil {
			break
		}
		up := filepath.Dir(root)
		if up == root {
			return
		}
		root = up
	}
	if home, err := filepath.EvalSymlinks(s.Home); err == nil && within(home, root) {
		return // the home itself is one
	}
	if root != cwd {
		p.show(root, readable)
	}
	git := filepath.Join(root, ".git")
	p.lock(git)
	if common := linked(git); common != "" {
		p.show(common, readable)
	}
}

// linked is the repository of a linked work tree whose .git is a file: only one that names
// this file, too, as git makes them.
func linked(file string) string {
	data, err := small(file)
	if err != nil {
		return ""
	}
	dir, ok := strings.CutPrefix(strings.TrimSpace(data), "gitdir: ")
	if !ok || !filepath.IsAbs(dir) {
		return ""
	}
	back, err := small(filepath.Join(dir, "gitdir"))
	if err != nil || strings.TrimSpace(back) != file {
		return ""
	}
	worktrees := filepath.Dir(filepath.Clean(dir))
	if filepath.Base(worktrees) != "worktrees" {
		return ""
	}
	return filepath.Dir(worktrees)
}

// small reads a regular file of a few bytes.
func small(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 4096 {
		return "", os.ErrInvalid
	}
	data, err := os.ReadFile(path)
	return string(data), err
}

// support is what a program needs to run that may be in the home: itself, what its links
// lead to, the packages of Node.js or Python that it is part of, and what runs it.
func support(program, path string, depth int) (paths []string) {
	if program == "" || depth > 3 {
		return nil
	}
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return nil
	}
	paths = append(paths, program, real)
	for _, p := range []string{program, real} {
		const packages = "/node_modules/"
		if i := strings.Index(p, packages); i >= 0 {
			paths = append(paths, p[:i+len(packages)-1])
		}
		dir := filepath.Dir(p)
		if beside := filepath.Join(filepath.Dir(dir), "lib", "node_modules"); filepath.Base(dir) == "bin" && isDir(beside) {
			paths = append(paths, beside)
		}
		if venv := filepath.Dir(dir); fileIn(venv, "pyvenv.cfg") {
			paths = append(paths, venv)
			if python, err := filepath.EvalSymlinks(filepath.Join(venv, "bin", "python")); err == nil {
				paths = append(paths, filepath.Dir(filepath.Dir(python)))
			}
		}
	}
	if interpreter := shebang(real); interpreter != "" {
		if !filepath.IsAbs(interpreter) {
			interpreter = look(interpreter, path)
		}
		paths = append(paths, support(interpreter, path, depth+1)...)
	}
	return paths
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func fileIn(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Mode().IsRegular()
}

// shebang is the interpreter that a script names; a bare name is looked up.
func shebang(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	head := make([]byte, 256)
	n, _ := file.Read(head)
	line, ok := strings.CutPrefix(string(head[:n]), "#!")
	if !ok {
		return ""
	}
	line, _, _ = strings.Cut(line, "\n")
	words := strings.Fields(line)
	if len(words) == 0 {
		return ""
	}
	if filepath.Base(words[0]) == "env" {
		for _, word := range words[1:] {
			if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
				return word
			}
		}
	}
	return words[0]
}

// look finds a program.
func look(name, path string) string {
	for dir := range strings.SplitSeq(path, ":") {
		found := filepath.Join(dir, name)
		if info, err := os.Stat(found); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return found
		}
	}
	return ""
}
