package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/registry"
	"github.com/amux-dev/amux/host/store"
	"github.com/amux-dev/amux/pluginapi"
)

// finding is one thing that doctor looked at.
type finding struct {
	Check   string `json:"check"`
	Status  string `json:"status"` // ok, note, fail
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

func newDoctor(s *session) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong, and say what mends it",
		Long:  "Look for what is wrong, and say what mends it. It starts no agent and no plugin.\nThe exit code is 1 if something must be mended.",
		Args:  exactly(),
		RunE: command(func(*cobra.Command, []string) error {
			findings, err := s.examine()
			if err != nil {
				return err
			}
			if asJSON {
				err = s.printJSON(findings)
			} else {
				s.printFindings(findings)
			}
			if err != nil {
				return err
			}
			for _, f := range findings {
				if f.Status == "fail" {
					return exitError(1)
				}
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (s *session) printFindings(findings []finding) {
	marks := map[string]string{"ok": "✓", "note": "-", "fail": "✗"}
	for _, f := range findings {
		s.outf("%s %s: %s\n", marks[f.Status], f.Check, f.Message)
		if f.Fix != "" {
			s.outf("    %s\n", f.Fix)
		}
	}
}

// examine makes all findings.
func (s *session) examine() ([]finding, error) {
	var findings []finding
	set, err := s.userSettings()
	if err == nil {
		_, err = s.loadSettings()
	} else {
		set = cautious // the rest can be looked at all the same
	}
	if e := pluginapi.AsError(err); e != nil {
		findings = append(findings, finding{"settings", "fail", e.Error(), e.Hint})
	}
	o, err := s.optionsOf(set)
	if err != nil {
		return nil, err
	}
	h, err := s.hostBy(func() (host.Options, error) { return o, nil })
	if err != nil {
		return nil, err
	}
	findings = append(findings,
		checkFolder("configuration folder", o.ConfigDir, "choose another by --config-dir or AGENT_MUX_CONFIG_DIR"),
		checkFolder("runtime folder", o.RuntimeDir, "set XDG_RUNTIME_DIR to a folder of yours"),
		checkOwn("amux-shim", o.ShimPath),
		checkOwn(pluginapi.Bridge, filepath.Join(filepath.Dir(o.ShimPath), programName(pluginapi.Bridge))),
	)
	findings = append(findings, s.checkPlugins(o)...)
	agents, err := h.Agents(context.Background())
	if err != nil {
		return nil, err
	}
	for _, a := range agents {
		if a.Err == nil {
			findings = append(findings, checkAgent(a))
		}
	}
	runs, err := h.Runs(context.Background())
	if err != nil {
		return nil, err
	}
	findings = append(findings, checkFormats(runs, agents)...)
	return append(findings, checkRuns(o.ConfigDir)...), nil
}

// recentRuns is how many of an agent's last runs tell whether it still speaks as its
// adapter expects.
const recentRuns = 20

// checkFormats finds agents that have lately printed lines which their adapter does
// not know: a new version of the CLI, as a rule.
func checkFormats(runs []host.RunInfo, agents []host.AgentInfo) []finding {
	type drift struct {
		runs, of, lines int
		last            string
	}
	seen := map[string]*drift{}
	var order []string
	for _, run := range runs { // newest first
		d := seen[run.Agent]
		if d == nil {
			d = &drift{}
			seen[run.Agent] = d
			order = append(order, run.Agent)
		}
		if run.End == nil || d.of == recentRuns {
			continue
		}
		d.of++
		if n := run.End.UnknownLines; n > 0 {
			d.runs++
			d.lines += n
			if d.last == "" {
				d.last = run.ID
			}
		}
	}
	var findings []finding
	for _, agent := range order {
		d := seen[agent]
		if d.lines == 0 {
			continue
		}
		message := fmt.Sprintf("%d lines of %d of its last %d runs were not understood", d.lines, d.runs, d.of)
		for _, a := range agents {
			tested := a.Description.GetVersions().GetTested()
			if a.Description.GetId() == agent && a.Version != "" && tested != "" && a.Version != tested {
				message += fmt.Sprintf("; it is %s, and its adapter was tested with %s", a.Version, tested)
			}
		}
		findings = append(findings, finding{"format of " + agent, "note", message,
			"amux logs " + render.ShortID(d.last) + " --json shows them, as log; a newer plugin may know them"})
	}
	return findings
}

// checkFolder tries to write in a folder, without making it.
func checkFolder(what, dir, fix string) finding {
	info, err := os.Stat(dir)
	if os.IsNotExist(err) {
		return finding{what, "ok", dir + " is not there yet; the first run makes it", ""}
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
		return finding{what, "fail", fmt.Sprintf("%s cannot be written: %v", dir, err), fix}
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && !isWindows {
		return finding{what, "fail", fmt.Sprintf("%s is open to other users (mode %o)", dir, mode), "chmod 700 " + dir}
	}
	return finding{what, "ok", dir, ""}
}

// checkOwn looks at a program of amux's own.
func checkOwn(name, path string) finding {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return finding{name, "fail", path + " is missing", "reinstall amux; from source: make build"}
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 && !isWindows:
		return finding{name, "fail", path + " is not executable", "chmod +x " + path}
	}
	return finding{name, "ok", path, ""}
}

// checkPlugins verifies every plugin as a run would.
func (s *session) checkPlugins(o host.Options) []finding {
	r, err := s.registry(true)
	if err != nil {
		return []finding{{"plugins", "fail", err.Error(), ""}}
	}
	plugins := r.List()
	if len(plugins) == 0 {
		return []finding{{"plugins", "fail", "there are none in " + o.BundledDir, "reinstall amux; from source: make build"}}
	}
	var findings []finding
	for _, p := range plugins {
		name := "plugin " + p.Name
		err := p.Err
		if err == nil {
			_, err = r.Verify(p)
		}
		if e := pluginapi.AsError(err); e != nil {
			fix := e.Hint
			if fix == "" {
				fix = e.Code.Info().Hint
			}
			findings = append(findings, finding{name, "fail", e.Error(), fix})
			continue
		}
		f := finding{name, "ok", fmt.Sprintf("%s, %s, %s", p.Version, p.Trust, filepath.ToSlash(p.Executable)), ""}
		if p.Origin == registry.OriginOverride || p.Linked {
			f.Status = "note"
			f.Message += ", in the place of the installed one"
		}
		findings = append(findings, f)
	}
	return append(findings, checkClaims(plugins)...)
}

// checkClaims says which plugin serves an agent that more than one declares.
func checkClaims(plugins []registry.Plugin) []finding {
	var findings []finding
	for _, c := range registry.Claims(plugins) {
		name, others := "agent "+c.Agent, strings.Join(c.Others, ", ")
		switch {
		case c.By == "":
			findings = append(findings, finding{name, "fail", "the plugins " + others + " declare it, and none serves it",
				"remove one of them, or choose: amux plugin install SOURCE --take-over " + c.Agent})
		case c.TakenOver:
			findings = append(findings, finding{name, "note", "plugin " + c.By + " serves it in the place of " + others,
				"to undo that: amux plugin remove " + c.By})
		default:
			findings = append(findings, finding{name, "note", "plugin " + c.By + " serves it; " + others + " declares it too",
				"to choose " + c.Others[0] + ": amux plugin install SOURCE --take-over " + c.Agent})
		}
	}
	return findings
}

// checkAgent says what is missing for an agent to run. That is no fault of amux.
func checkAgent(a host.AgentInfo) finding {
	f := finding{"agent " + a.Description.GetId(), "ok", "", ""}
	switch {
	case !a.PlatformOK:
		f.Status, f.Message = "note", "it has no build for this platform"
	case !a.Installed:
		f.Status, f.Message = "note", "not installed"
		for _, i := range a.Description.Installs {
			if text := installText(i); text != "" {
				f.Fix = text
				break
			}
		}
	case !a.SignedIn:
		f.Status, f.Message = "note", "installed, "+signedInWord(a)
		if word := signedInWord(a); word == "no" {
			f.Message = "installed, not signed in"
		}
		f.Fix = strings.Join(a.Description.AuthGuidance, "; ")
	default:
		f.Message = "installed"
		if a.Version != "" {
			f.Message += " " + a.Version
		}
		if len(a.Auth) > 0 {
			f.Message += ", signed in"
		}
	}
	return f
}

// checkRuns finds runs that are marked active though no host holds them.
func checkRuns(configDir string) []finding {
	st := store.New(configDir)
	active, dead := 0, []string{}
	for _, id := range st.Active() {
		run := st.Run(id)
		if err := run.Lock(); err != nil {
			active++
			continue
		}
		run.Unlock()
		dead = append(dead, id)
	}
	if len(dead) > 0 {
		return []finding{{"runs", "fail", fmt.Sprintf("the host of %s died before its end was recorded", strings.Join(dead, ", ")),
			"amux inspect " + render.ShortID(dead[0])}}
	}
	return []finding{{"runs", "ok", fmt.Sprintf("%d active", active), ""}}
}
