package cli

import (
	"bytes"
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/pluginapi"
)

//go:embed template
var templates embed.FS

func newPluginNew(s *session) *cobra.Command {
	var dir, module, checkout string
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Begin a plugin: a Go module that builds and passes its tests",
		Long: `Begin a plugin for the agent NAME: a Go module with adapter, tests, recordings and
manifest, which builds and passes its tests as it is. --sdk takes the SDK from a
checkout of amux on this machine, so that no network is needed.`,
		Args: exactly("a name"),
		RunE: command(func(_ *cobra.Command, args []string) error {
			if dir == "" {
				dir = "amux-plugin-" + args[0]
			}
			return s.newPlugin(args[0], s.abs(dir), module, checkout)
		}),
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the `FOLDER` to make (default amux-plugin-NAME)")
	cmd.Flags().StringVar(&module, "module", "", "the Go module's `PATH` (default example.com/amux-plugin-NAME)")
	cmd.Flags().StringVar(&checkout, "sdk", "", "use the SDK of this `CHECKOUT` of amux")
	return cmd
}

var moduleRule = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*(/[A-Za-z0-9._~-]+)*$`)

func (s *session) newPlugin(name, dir, module, checkout string) error {
	if err := install.CheckName(name); err != nil {
		return err
	}
	if module == "" {
		module = "example.com/amux-plugin-" + name
	}
	if !moduleRule.MatchString(module) {
		return usage("--module %s: want a Go module's path", module).WithHint("for example github.com/acme/amux-plugin-%s", name)
	}
	if _, err := os.Lstat(dir); err == nil {
		return pluginapi.Errorf(pluginapi.CodeValidation, "%s exists already", dir).WithHint("name another folder by --dir")
	} else if !errors.Is(err, fs.ErrNotExist) {
		return pluginapi.Errorf(pluginapi.CodeValidation, "%w", err)
	}
	files, err := s.moduleFiles(module, checkout)
	if err != nil {
		return err
	}
	data := struct{ Name, Title, Executable string }{name, strings.ToUpper(name[:1]) + name[1:], "amux-plugin-" + name}
	err = fs.WalkDir(templates, "template", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := templates.ReadFile(path)
		if err != nil {
			return err
		}
		t, err := template.New(path).Parse(string(text))
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := t.Execute(&b, data); err != nil {
			return err
		}
		to := strings.TrimSuffix(strings.TrimPrefix(path, "template/"), ".tmpl")
		if to == "gitignore" {
			to = ".gitignore" // go:embed leaves out names that begin with a dot
		}
		files[to] = b.Bytes()
		return nil
	})
	if err != nil {
		return err
	}
	if err := writeNew(dir, files); err != nil {
		return err
	}
	s.errf("made %s", dir)
	steps := []string{"cd " + dir, "go test ./...", "make build && amux plugin install ."}
	if checkout == "" {
		steps[1] = "go mod tidy && go test ./..."
	}
	for _, step := range steps {
		s.errf("  %s", step)
	}
	return nil
}

// moduleFiles are go.mod and, for a checkout, go.sum: its own requirements are
// enough for whoever uses its SDK, and need no network where it was built.
func (s *session) moduleFiles(module, checkout string) (map[string][]byte, error) {
	const amux = "github.com/amux-dev/amux"
	head := "module " + module + "\n\ngo 1.26.0\n\n"
	if checkout == "" {
		return map[string][]byte{"go.mod": []byte(head + "require " + amux + " v" + strings.TrimPrefix(s.app.Version, "v") + "\n")}, nil
	}
	checkout = s.abs(checkout)
	own, err := os.ReadFile(filepath.Join(checkout, "go.mod"))
	if err != nil || !bytes.HasPrefix(own, []byte("module "+amux+"\n")) {
		return nil, usage("--sdk %s: it is no checkout of amux", checkout).WithHint("want the folder with amux's go.mod")
	}
	sums, err := os.ReadFile(filepath.Join(checkout, "go.sum"))
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeValidation, "--sdk: %w", err)
	}
	_, requires, _ := strings.Cut(string(own), "\nrequire (\n")
	requires = regexp.MustCompile(`(?m)^(\t\S+ v\S+)$`).ReplaceAllString("require (\n"+requires, "$1 // indirect")
	return map[string][]byte{
		"go.mod": []byte(head + "require " + amux + " v0.0.0\n\nreplace " + amux + " => " + checkout + "\n\n" + requires),
		"go.sum": sums,
	}, nil
}

// writeNew writes files into a folder that was not there. If it cannot, nothing
// stays.
func writeNew(dir string, files map[string][]byte) (retErr error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return pluginapi.Errorf(pluginapi.CodeConfig, "%w", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return pluginapi.Errorf(pluginapi.CodeConfig, "%w", err)
	}
	defer func() {
		if retErr != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return pluginapi.Errorf(pluginapi.CodeConfig, "%w", err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return pluginapi.Errorf(pluginapi.CodeConfig, "%w", err)
		}
	}
	return nil
}
