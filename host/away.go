package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/amux-dev/amux/host/internal/folders"
	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/host/internal/spawn"
	"github.com/amux-dev/amux/internal/command"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/place"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/program"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// Place is another machine, or a container, where runs can be. It is reached by the user's own
// ssh, by the API of an engine or of a cluster, or by a helper program. One of SSH, Docker, Kubernetes and
// Program is set.
type Place struct {
	SSH string `json:"ssh,omitempty"` // as ssh takes it: HOST, USER@HOST, or an alias of its settings
	// Docker is the image of a container that each run gets, and Engine what makes it: docker if
	// it is empty, or podman. Args are flags of its run command: see docs/places/container.md.
	Docker string   `json:"docker,omitempty"`
	Engine string   `json:"engine,omitempty"`
	Args   []string `json:"args,omitempty"`
	// Kubernetes is the image of a pod that each run gets in a cluster; Options say the rest.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Program is a helper program, and Options is what it is told: docs/places/helper.md.
	Program string            `json:"program,omitempty"`
	Options map[string]string `json:"options,omitempty"`
	// Folder is the work folder there of runs that name none: absolute, or ~/NAME.
	Folder string `json:"folder,omitempty"`
	// Env are variables of the caller that agents there get. They get no other.
	Env []string `json:"env,omitempty"`
	// Alone is how long a detached run goes on there without a connection; 0: a day.
	Alone time.Duration `json:"alone_ns,omitempty"`
}

func (p Place) named(name string) place.Place {
	return place.Place{Name: name, SSH: p.SSH, Image: p.Docker, Engine: p.Engine, Args: p.Args, Kubernetes: p.Kubernetes, Program: p.Program, Options: p.Options, Folder: p.Folder, Env: p.Env, Alone: p.Alone}
}

// Places is how a host reaches other places.
type Places struct{ host *Host }

// PlacesOf are those of Options.Places, and hosts named as ssh:HOST.
func PlacesOf(h *Host) *Places { return &Places{h} }

// find finds a place by its name, or takes it as it is described.
func (p *Places) find(name string, given *Place) (place.Place, error) {
	found, ok := place.Place{}, false
	if given != nil {
		found, ok = given.named(name), true
	} else if configured, has := p.host.opts.Places[name]; has {
		found, ok = configured.named(name), true
	} else {
		found, ok = place.Parse(name)
	}
	if !ok {
		names := slices.Sorted(maps.Keys(p.host.opts.Places))
		hint := "describe it in config.toml as [places." + name + "], or name a host as ssh:HOST, an image as docker:IMAGE or kubernetes:IMAGE"
		if len(names) > 0 {
			hint = "there are: " + strings.Join(names, ", ") + "; or name a host as ssh:HOST, an image as docker:IMAGE or kubernetes:IMAGE"
		}
		return found, pluginapi.Errorf(pluginapi.CodeConfig, "there is no place %q", name).WithHint("%s", hint)
	}
	if err := found.Check(); err != nil {
		return found, pluginapi.Errorf(pluginapi.CodeConfig, "place %s: %w", name, err).WithHint("see [places.%s] in config.toml, and docs/places.md", name)
	}
	found = found.Helped(filepath.Dir(p.host.opts.ShimPath))
	if runtime.GOOS == "windows" {
		return found, pluginapi.Errorf(pluginapi.CodeCapability, "runs at other places (--on) need Linux or macOS here")
	}
	if found.Own() && command.Executable(found.Program) == "" {
		return found, pluginapi.Errorf(pluginapi.CodeConfig, "runs at %s need %s, which is missing or not executable", name, found.Program).
			WithHint("%s belongs beside the amux program; from source: make build", filepath.Base(found.Program))
	}
	return found, folders.Runtime(p.host.opts.RuntimeDir) // for what is shared
}

func (p *Places) dialer() place.Dialer {
	return place.Dialer{Env: p.host.opts.Env, Programs: place.Programs(filepath.Dir(p.host.opts.ShimPath)), Owner: p.host.opts.ConfigDir, Shared: p.host.opts.RuntimeDir, Starting: process.Starting}
}

func (p *Places) relay() string {
	return filepath.Join(filepath.Dir(p.host.opts.ShimPath), "amux-relay"+exeSuffix())
}

// List lists the places of Options.Places by name, as PlaceInfo says what they are. It connects
// to none.
func (p *Places) List() []PlaceInfo {
	list := []PlaceInfo{}
	for _, name := range slices.Sorted(maps.Keys(p.host.opts.Places)) {
		at := p.host.opts.Places[name]
		list = append(list, PlaceInfo{Name: name, Is: at.named(name).Is(), Folder: at.Folder})
	}
	return list
}

// PlaceInfo is what a place says of itself.
type PlaceInfo struct {
	Name   string   `json:"name"`
	Is     string   `json:"is"`               // "ssh HOST", "docker IMAGE", "kubernetes IMAGE", "program PATH"
	System string   `json:"system,omitempty"` // GOOS/GOARCH
	Home   string   `json:"home,omitempty"`
	Folder string   `json:"folder,omitempty"` // the work folder; "" if none is configured
	Notes  []string `json:"notes,omitempty"`
	// Agents are the installed agents whose program is in the PATH there.
	Agents []string   `json:"agents,omitempty"`
	Runs   []PlaceRun `json:"runs,omitempty"`
}

// PlaceRun is what is at a place of one run.
type PlaceRun struct {
	ID    string    `json:"id"`
	Lives bool      `json:"lives"`
	Begun time.Time `json:"begun"`
}

// Check connects to a place, which puts amux's programs there if they are missing, and says
// what is there. It starts no agent.
func (p *Places) Check(ctx context.Context, name string) (*PlaceInfo, error) {
	at, err := p.find(name, nil)
	if err != nil {
		return nil, err
	}
	a := &away{places: p, place: at}
	defer a.close()
	id, alone := "", at.Contained()
	if !alone {
		err := a.open(ctx, "")
		if alone = isGone(err); err != nil && !alone {
			return nil, err
		}
	}
	if alone { // nothing is there without a run
		id = ulid.Make().String()
		defer p.dialer().Destroy(context.WithoutCancel(ctx), at, id)
		if a.place, err = p.dialer().Provision(ctx, at, id, cmp.Or(at.Folder, p.host.opts.TempDir)); err != nil {
			return nil, a.unreachable(err)
		}
	}
	if err := a.open(ctx, id); err != nil { // it may be open
		return nil, err
	}
	info := &PlaceInfo{
		Name: name, Is: at.Is(), System: a.world.OS + "/" + a.world.Arch, Home: a.world.Home, Notes: a.world.Notes,
	}
	if at.Folder != "" {
		if info.Folder, err = a.folder(ctx, at.Folder); err != nil {
			return nil, err
		}
	}
	known, err := p.host.Agents(ctx)
	if err != nil {
		return nil, err
	}
	for _, agent := range known {
		if agent.Description == nil || agent.Description.Program == "" || !program.RunsOn(agent.Description, a.world.OS, a.world.Arch) {
			continue
		}
		found, _, err := a.client.Look(ctx, agent.Description.Program, a.world.Home, a.world.Env)
		if err != nil {
			return nil, a.unreachable(err)
		}
		if found != "" {
			info.Agents = append(info.Agents, agent.Description.Id)
		}
	}
	runs, err := a.client.Runs(ctx)
	for _, r := range runs {
		info.Runs = append(info.Runs, PlaceRun(r))
	}
	return info, a.unreachable(err)
}

// Clean removes from a place what runs have left there that nobody goes on with, and returns
// their ids. Runs that live are left alone, and so are those that this host's records may still
// fetch the end of.
func (p *Places) Clean(ctx context.Context, name string) (removed []string, _ error) {
	at, err := p.find(name, nil)
	if err != nil {
		return nil, err
	}
	a := &away{places: p, place: at}
	defer a.close()
	if !at.Contained() {
		if removed, err = a.clean(ctx); err != nil && !isGone(err) {
			return removed, err
		}
	}
	made, err := p.dialer().List(ctx, at)
	if err != nil {
		return removed, a.unreachable(err)
	}
	for _, id := range made {
		if slices.Contains(removed, id) || p.host.store.Run(id).Active() {
			continue
		}
		if err := p.dialer().Destroy(ctx, at, id); err != nil {
			return removed, a.unreachable(err)
		}
		removed = append(removed, id)
	}
	return removed, nil
}

// isGone reports that what was asked for is not there: of no run, that nothing is there without
// one.
func isGone(err error) bool {
	_, gone := errors.AsType[*place.GoneError](err)
	return gone
}

// PlaceCheck is one thing that a place must do; Err is nil if it does.
type PlaceCheck struct {
	Name string
	Err  error
}

// Test tries whether a place does what docs/places/helper.md asks of it, and tells what it finds. It
// starts no agent, and leaves nothing there but amux's programs.
func (p *Places) Test(ctx context.Context, at Place, told func(PlaceCheck)) error {
	named := at.named("test")
	if err := named.Check(); err != nil {
		return invalid("the place: %w", err)
	}
	p.dialer().Conform(ctx, named, ulid.Make().String(), func(c place.Check) { told(PlaceCheck(c)) })
	return ctx.Err()
}

// away is the place of a run that is being started, and the connection to it while it is
// needed.
type away struct {
	places *Places
	place  place.Place
	record place.Record
	world  place.World

	mu     sync.Mutex
	client *place.Client
}

func (a *away) open(ctx context.Context, runID string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client != nil {
		return nil
	}
	client, err := a.places.dialer().Open(ctx, a.place, runID)
	if err == nil && a.world.Home == "" {
		if a.world, err = client.World(ctx); err != nil {
			_ = client.Close()
		}
	}
	if err != nil {
		return a.unreachable(err)
	}
	a.client = client
	return nil
}

// clean removes the folders there of runs that have ended, and returns their ids.
func (a *away) clean(ctx context.Context) (removed []string, _ error) {
	if err := a.open(ctx, ""); err != nil {
		return nil, err
	}
	runs, err := a.client.Runs(ctx)
	for _, r := range runs {
		if r.Lives || a.places.host.store.Run(r.ID).Active() {
			continue
		}
		if err = a.client.Remove(ctx, r.ID); err != nil {
			break
		}
		removed = append(removed, r.ID)
	}
	return removed, a.unreachable(err)
}

func (a *away) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client != nil {
		_ = a.client.Close()
		a.client = nil
	}
}

// unreachable is the error of a place that cannot be reached, or does not do as it should.
func (a *away) unreachable(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	hint := "see: amux place check " + a.place.Name
	switch {
	case a.place.Image != "":
		hint = "see: " + cmp.Or(a.place.Engine, "docker") + " info; and docs/places/container.md"
	case a.place.Kubernetes != "":
		hint = "see: kubectl auth can-i create jobs; and docs/places/kubernetes.md for what amux asks of a cluster"
	case a.place.SSH != "":
		hint = "this must work without a question: ssh " + a.place.SSH + " true"
	}
	return pluginapi.Errorf(pluginapi.CodeNetwork, "%w", err).WithHint("%s", hint)
}

// folder is a folder there with its links resolved.
func (a *away) folder(ctx context.Context, name string) (string, error) {
	full := name
	if rest, ok := strings.CutPrefix(name, "~"); ok && (rest == "" || rest[0] == '/') {
		full = a.world.Home + rest
	}
	if !path.IsAbs(full) {
		return "", invalid("%s is not absolute: at %s it could be anywhere", name, a.place.Name).WithHint("'~/NAME' is in the home there")
	}
	found, err := a.client.Folder(ctx, full)
	if err != nil {
		return "", a.unreachable(err)
	}
	if found == "" {
		missing := invalid("there is no folder %s at %s", full, a.place.Name)
		here := process.EnvValue(a.places.host.opts.Env, "HOME")
		if rest, ok := strings.CutPrefix(name, here+"/"); ok && here != "" && here != a.world.Home {
			return "", missing.WithHint("a shell takes ~ for your home here; for the one there: --cwd '~/%s'", rest)
		}
		return "", missing
	}
	return found, nil
}

// checkPlace finds the place of a run, connects to it, and takes the spec's paths as of there.
func (l *launch) checkPlace(ctx context.Context) error {
	s := &l.spec
	if s.On == "" {
		return nil
	}
	at, err := PlacesOf(l.h).find(s.On, s.Place)
	if err != nil {
		return err
	}
	refused := ""
	switch {
	case l.h.edges.relay == nil:
		return invalid("there are no other places here")
	case s.Sandbox != nil:
		refused = "a sandbox (--sandbox)"
	case s.Worktree != nil:
		refused = "a worktree (--worktree)"
	case s.Continue:
		refused = "--continue"
	}
	if refused != "" {
		return pluginapi.Errorf(pluginapi.CodeCapability, "%s is of this machine, and the run is to be at %s (--on)", refused, s.On)
	}
	l.away = &away{places: PlacesOf(l.h), place: at}
	if command.Executable(l.away.places.relay()) == "" {
		return pluginapi.Errorf(pluginapi.CodeConfig, "runs at other places need %s, which is missing or not executable", l.away.places.relay()).
			WithHint("amux-relay belongs beside the amux program; see: amux doctor")
	}
	if s.RunID == "" {
		s.RunID = ulid.Make().String()
	}
	cwd := cmp.Or(s.Cwd, at.Folder)
	if cwd == "" {
		return invalid("where at %s is the run to work?", s.On).WithHint("say so: --cwd '~/NAME', or folder in [places.%s] of config.toml", s.On)
	}
	if l.away.place.WorksHere() {
		if err := checkDir("working directory", cwd); err != nil {
			return err
		}
	}
	if at, err = l.away.places.dialer().Provision(ctx, at, s.RunID, cwd); err != nil {
		return l.away.unreachable(err)
	}
	l.away.place = at
	l.away.record.Place = at // so that undo takes it back
	if err := l.away.open(ctx, s.RunID); err != nil {
		return err
	}
	far, err := l.away.places.dialer().Programs.Arguments()
	if err != nil {
		return err
	}
	l.away.record = place.Record{Place: at, Home: l.away.world.Home, Far: far, Shared: l.h.opts.RuntimeDir, Owner: l.h.opts.ConfigDir}
	if s.Cwd, err = l.away.folder(ctx, cwd); err != nil {
		return err
	}
	for i, dir := range s.AddDirs {
		if s.AddDirs[i], err = l.away.folder(ctx, dir); err != nil {
			return err
		}
	}
	env := slices.Clone(l.away.world.Env)
	for _, name := range at.Env {
		if value, ok := lookupEnv(l.world(), name); ok {
			env = append(env, name+"="+value)
		}
	}
	s.Environ = env
	return nil
}

func lookupEnv(env []string, name string) (value string, found bool) {
	for _, variable := range env {
		if n, v, _ := strings.Cut(variable, "="); n == name {
			value, found = v, true
		}
	}
	return value, found
}

// findProgram finds the agent's CLI where the run will be.
func (l *launch) findProgram(ctx context.Context) (program.Agent, error) {
	if l.away == nil {
		return l.h.catalog.programs.Find(ctx, l.agent, l.world(), l.spec.Cwd)
	}
	a, agent := l.away, l.agent
	if !program.RunsOn(agent, a.world.OS, a.world.Arch) {
		return program.Agent{}, pluginapi.Errorf(pluginapi.CodeAgentNotInstalled, "agent %s does not run on %s/%s, which %s is", agent.Id, a.world.OS, a.world.Arch, a.place.Name).
			WithHint("use another agent; see: amux agents list")
	}
	if agent.Program == "" {
		if l.spec.Launch == nil {
			return program.Agent{}, pluginapi.Errorf(pluginapi.CodeCapability, "agent %s is brought by its plugin, and that is on this machine, not at %s", agent.Id, a.place.Name).
				WithHint("use an agent whose program is there: amux place check %s", a.place.Name)
		}
		return program.Agent{}, nil
	}
	found, stamp, err := a.client.Look(ctx, agent.Program, l.spec.Cwd, l.world())
	if err != nil {
		return program.Agent{}, a.unreachable(err)
	}
	if found == "" {
		return program.Agent{}, pluginapi.Errorf(pluginapi.CodeAgentNotInstalled, "agent %s is not installed at %s: no program %q in PATH there", agent.Id, a.place.Name, agent.Program).
			WithHint("%s, there", program.InstallHint(agent))
	}
	var failed error
	cli := program.Agent{Path: found}
	cli.Version = l.h.catalog.programs.AskElsewhere(agent, a.place.Name, found, stamp, func(argv []string) (stdout, stderr []byte) {
		result, err := a.client.Exec(ctx, argv, "", l.world())
		failed = err
		return result.Stdout, result.Stderr
	})
	if failed != nil {
		return cli, a.unreachable(failed)
	}
	return cli, cli.Check(agent)
}

// moveFiles names the files that go with the prompt as they will be at the run's place.
func (a *away) moveFiles(l *launch) {
	for i, file := range l.options.Attachments {
		file.Path = path.Join(a.world.Temp, place.TempName(l.spec.RunID), fmt.Sprintf("attached-%d-%s", i+1, filepath.Base(file.Path)))
		l.spec.Files[i] = file.Path
	}
}

// exec runs a short command that an adapter asks for, where the run will be.
func (l *launch) exec(ctx context.Context, wanted *pb.Exec) *pluginapi.ExecResult {
	if l.away == nil {
		return program.Exec(command.Command{Env: l.world(), Cwd: l.spec.Cwd})(ctx, wanted)
	}
	result, err := l.away.client.Exec(ctx, wanted.GetArgv(), l.spec.Cwd, l.world())
	if err != nil {
		l.h.log.Named("place").Debug("a command for the adapter failed", "place", l.away.place.Name, "error", err)
	}
	return &pluginapi.ExecResult{Argv: wanted.GetArgv(), ExitCode: int32(result.Exit), Stdout: result.Stdout, Stderr: result.Stderr}
}

// machine is where the agent is started; nil: here.
func (l *launch) machine(ctx context.Context) spawn.Machine {
	if l.away == nil {
		return nil
	}
	return thereMachine{ctx, l}
}

// temp is the run's folder for temporary files where its agent is.
func (l *launch) temp() string {
	if l.away == nil {
		return l.meta.TempDir
	}
	return l.away.record.Temp
}

// beside is the folder of amux's programs where the agent is.
func (l *launch) beside() string {
	if l.away == nil {
		return filepath.Dir(l.h.opts.ShimPath)
	}
	return l.away.world.Beside
}

// settleThere makes what the run needs at its place: folders, the beginning of its journal,
// and the files that go with the prompt.
func (l *launch) settleThere(ctx context.Context) error {
	if l.away == nil {
		return nil
	}
	begun, err := os.ReadFile(l.dir.Path("journal"))
	if err != nil {
		return err
	}
	made, err := l.away.client.Make(ctx, l.meta.RunID, begun)
	if err != nil {
		return l.away.unreachable(err)
	}
	l.away.record.Temp, l.away.record.Socket = made.Temp, made.Socket
	for _, a := range l.options.Attachments {
		if err := l.away.client.Put(ctx, l.meta.RunID, path.Base(a.Path), a.Content); err != nil {
			return l.away.unreachable(err)
		}
	}
	return l.away.record.Write(l.dir.Dir)
}

// undo takes back what a start that has failed has made at its place.
func (a *away) undo(runID string) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if a.record.Temp != "" && a.open(ctx, runID) == nil {
		_ = a.client.Remove(ctx, runID) // amux place clean does it else
	}
	a.close()
	if a.record.Place.Name != "" {
		_ = a.places.dialer().Destroy(ctx, a.record.Place, runID)
	}
}

// thereMachine is the machine where a run will be that is elsewhere.
type thereMachine struct {
	ctx context.Context
	l   *launch
}

func (m thereMachine) Look(program string, env []string, cwd string) (string, error) {
	found, _, err := m.l.away.client.Look(m.ctx, program, cwd, env)
	return found, m.l.away.unreachable(err)
}

func (m thereMachine) IsFolder(path string) (bool, error) {
	found, err := m.l.away.client.Folder(m.ctx, path)
	return found != "", m.l.away.unreachable(err)
}

func (m thereMachine) Put(name string, content []byte) error {
	return m.l.away.unreachable(m.l.away.client.Put(m.ctx, m.l.meta.RunID, name, content))
}

// revive starts what stands here for the shim of a run at another place, if that has died: by
// kill -9, or with this machine. It is left alone, and goes on as the one before. It does
// nothing for a run of this machine, and for one whose end was fetched.
func (p *Places) revive(dir *store.Run, meta store.Meta, detached bool) error {
	h := p.host
	if h.edges.relay == nil {
		return nil
	}
	at, err := place.ReadRecord(dir.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	before, err := shim.ReadInfo(dir.Dir)
	if err != nil {
		return nil // it had not begun
	}
	relay, err := h.edges.relay(p.relay(), dir.Dir, h.opts.Env, shim.Hello{
		Version: shim.Version, Nonce: before.Nonce, Host: true, RunID: meta.RunID, Socket: before.Socket, TempDir: before.TempDir, Detached: detached,
		Alone: at.Place.AloneTime(),
	})
	if err == nil {
		relay.Leave()
	}
	return err
}

// takeOver opens the journal of a run whose shim is gone, to go on with it. If what stood here
// for one elsewhere was killed, the run is ended there first, and the rest of its journal is
// fetched, as far as its place can be reached.
func (p *Places) takeOver(dir *store.Run, meta store.Meta) func() (*journal.Writer, error) {
	h := p.host
	return func() (*journal.Writer, error) {
		if err := p.revive(dir, meta, false); err != nil {
			h.log.Named("place").Warn("a run at another place cannot be ended there", "run_id", meta.RunID, "error", err)
		}
		if info, lives := record.Shim(dir); lives && info.PID != 0 {
			for end := time.Now().Add(endThere); time.Now().Before(end) && !record.WaitGone(context.Background(), info); {
			}
		}
		return h.edges.writer(dir)()
	}
}

// endThere is how long the end of a run at another place may take.
const endThere = time.Minute

// here is the run's work folder if that is on this machine, else "".
func (s *RunSpec) here() string {
	if s.On != "" {
		return ""
	}
	return s.Cwd
}

// env is the environment for the run's rules. A run at another place has the home of that place.
func (r *recorded) env() []string {
	if at, err := place.ReadRecord(r.dir.Dir); err == nil {
		return []string{"HOME=" + at.Home}
	}
	return r.h.opts.Env
}
