package plugin

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/internal/sys/pattern"
	"github.com/amux-dev/amux/pluginapi"
)

// workspace is a folder in which an author writes a plugin.
type workspace struct {
	process *app.Process
	print   *app.Printer
	dir     string
	temp    string // for what is built; made when needed
}

// newWorkspace returns the workspace in a folder; empty: the current one.
func newWorkspace(a *app.App, dir string) *workspace {
	w := &workspace{process: a.Process, print: a.Print, dir: a.Cwd}
	if dir != "" {
		w.dir = a.Abs(dir)
	}
	return w
}

func (w *workspace) close() {
	if w.temp != "" {
		_ = os.RemoveAll(w.temp)
	}
}

// manifest reads the folder's manifest. An unknown key is a warning.
func (w *workspace) manifest() (*install.Manifest, []byte, error) {
	path := filepath.Join(w.dir, install.ManifestName)
	data, err := foreign.Read(path, foreign.Rule{Limit: app.MaxConfigFile})
	if err != nil {
		return nil, nil, pluginapi.Errorf(pluginapi.CodePluginNotFound, "no %s in %s", install.ManifestName, w.dir).
			WithHint("create a plugin: amux plugin new NAME")
	}
	m, unknown, err := install.ParseManifest(path, data)
	for _, warning := range unknown {
		w.print.Warnf("%s", warning)
	}
	return m, data, err
}

// build builds the folder's Go program for a platform.
func (w *workspace) build(ctx context.Context, m *install.Manifest, platform string) (string, error) {
	if w.temp == "" {
		temp, err := os.MkdirTemp("", "amux-plugin-*")
		if err != nil {
			return "", pluginapi.Errorf(pluginapi.CodeConfig, "%w", err)
		}
		w.temp = temp
	}
	goTool, err := lookGo(w.process)
	if err != nil {
		return "", err
	}
	goos, goarch, _ := strings.Cut(platform, "/")
	to := filepath.Join(w.temp, goos+"_"+goarch, install.ExecutableName(m.Name, platform))
	cmd := exec.CommandContext(ctx, goTool, "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid=", "-o", to, ".")
	cmd.Dir = w.dir
	cmd.Env = append(slices.Clone(w.process.Env), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	if text, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		_, _ = w.process.IO.Err.Write(text)
		if noSDK.Match(text) {
			return "", pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s cannot be built: the go command does not find the SDK, %s", w.dir, sdkModule).
				WithHint("until it is published take it from a checkout of amux: amux plugin new --sdk, go.work or GOFLAGS=-mod=vendor; see docs/writing-an-adapter.md")
		}
		return "", pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s cannot be built for %s: %s", w.dir, platform, firstLine(text, err)).
			WithHint("it must compile: go build %s", w.dir)
	}
	return to, nil
}

// noSDK is how the go command says that it has no module of the SDK.
var noSDK = pattern.New(regexp.QuoteMeta(sdkModule) + `@v\S+: |(provides|providing) package ` + regexp.QuoteMeta(sdkModule) + `/`)

// lookGo finds the go command in the caller's PATH.
func lookGo(p *app.Process) (string, error) {
	for _, dir := range filepath.SplitList(p.Getenv("PATH")) {
		path := filepath.Join(dir, app.ProgramName("go"))
		if info, err := os.Stat(path); err == nil && filepath.IsAbs(dir) && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", pluginapi.Errorf(pluginapi.CodeValidation, "no go command in PATH").
		WithHint("install Go, or give an executable: --binary %s/%s=PATH", runtime.GOOS, runtime.GOARCH)
}

// firstLine is the first line of a tool's output that is not a heading.
func firstLine(text []byte, err error) string {
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return render.String(line)
		}
	}
	return err.Error()
}

// isGo reports whether the folder holds a Go program.
func (w *workspace) isGo() bool {
	sources, _ := filepath.Glob(filepath.Join(w.dir, "*.go"))
	return len(sources) > 0
}

// runDescribe asks an executable for its description.
func (w *workspace) runDescribe(ctx context.Context, executable string) ([]byte, error) {
	supervision, err := host.Supervision(true)
	if err != nil {
		return nil, err
	}
	return install.RunDescribe(ctx, executable, supervision)
}
