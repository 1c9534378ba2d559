package plugin

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/internal/sys/pattern"
	"github.com/amux-dev/amux/pluginapi"
)

//go:embed template
var templates embed.FS

// NewOptions are what amux plugin new needs.
type NewOptions struct {
	Print   *app.Printer
	Version string // of amux

	Name     string
	Dir      string
	Module   string
	Checkout string // of amux, for its SDK
}

// NewCmdNew makes amux plugin new.
func NewCmdNew(a *app.App) *cobra.Command {
	o := &NewOptions{Print: a.Print, Version: a.Version}
	var dir, checkout string
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Create a plugin",
		Long: `Create a plugin for the agent NAME: a Go module with adapter, tests, recordings and
manifest, which builds and passes its tests. --sdk takes the SDK from a checkout of amux
on this machine, so that no network is needed: it writes a go.work, which is not
committed. The plugin's README.md says how others build it until the SDK is published.`,
		Example: `  amux plugin new acme
  amux plugin new acme --module github.com/acme/amux-plugin-acme --sdk ~/src/amux`,
		Args: app.ExactArgs("a name"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Name = args[0]
			if dir == "" {
				dir = "amux-plugin-" + o.Name
			}
			o.Dir, o.Checkout = a.Abs(dir), a.Abs(checkout)
			return newPlugin(o)
		}),
	}
	cmd.Flags().StringVar(&dir, "dir", "", "`FOLDER` to create (default amux-plugin-NAME)")
	cmd.Flags().StringVar(&o.Module, "module", "", "`PATH` of the Go module (default example.com/amux-plugin-NAME)")
	cmd.Flags().StringVar(&checkout, "sdk", "", "use the SDK of this `CHECKOUT` of amux")
	return cmd
}

var moduleRule = pattern.New(`^[a-z0-9][a-z0-9.-]*(/[A-Za-z0-9._~-]+)*$`)

func newPlugin(o *NewOptions) error {
	name, dir, module := o.Name, o.Dir, o.Module
	if err := install.CheckName(name); err != nil {
		return err
	}
	if module == "" {
		module = "example.com/amux-plugin-" + name
	}
	if !moduleRule.MatchString(module) {
		return app.Usagef("invalid --module %q: expected the path of a Go module", module).WithHint("for example github.com/acme/amux-plugin-%s", name)
	}
	if _, err := os.Lstat(dir); err == nil {
		return pluginapi.Errorf(pluginapi.CodeValidation, "%s already exists", dir).WithHint("name another folder with --dir")
	} else if !errors.Is(err, fs.ErrNotExist) {
		return pluginapi.Errorf(pluginapi.CodeValidation, "%w", err)
	}
	version := "v" + strings.TrimPrefix(o.Version, "v")
	files, err := moduleFiles(o, module, version)
	if err != nil {
		return err
	}
	// Not text/template: with it the linker keeps each method of amux that a template could name.
	fill := strings.NewReplacer("{{.Name}}", name, "{{.Title}}", strings.ToUpper(name[:1])+name[1:], "{{.Executable}}", "amux-plugin-"+name,
		"{{.SDK}}", sdkModule, "{{.Version}}", version)
	err = fs.WalkDir(templates, "template", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := templates.ReadFile(path)
		if err != nil {
			return err
		}
		to := strings.TrimSuffix(strings.TrimPrefix(path, "template/"), ".tmpl")
		if to == "gitignore" {
			to = ".gitignore" // go:embed leaves out names that begin with a dot
		}
		files[to] = []byte(fill.Replace(string(text)))
		return nil
	})
	if err != nil {
		return err
	}
	if err := writeNew(dir, files); err != nil {
		return err
	}
	o.Print.Notef("created %s", dir)
	steps := []string{"cd " + dir, "go test ./...", "make build && amux plugin install ."}
	if o.Checkout == "" {
		o.Print.Notef("until %s %s is published, take the SDK from a checkout: README.md says how", sdkModule, version)
		steps[1] = "go mod tidy && go test ./..."
	}
	for _, step := range steps {
		o.Print.Notef("  %s", step)
	}
	return nil
}

// sdkModule is the module that the SDK is part of.
const sdkModule = "github.com/amux-dev/amux"

var goLine = pattern.New(`(?m)^go \S+$`)

// moduleFiles are go.mod and, for a checkout, go.work. What is committed names no path
// of this machine: go.work is in .gitignore.
func moduleFiles(o *NewOptions, module, version string) (map[string][]byte, error) {
	files := map[string][]byte{"go.mod": []byte("module " + module + "\n\ngo 1.26.0\n\nrequire " + sdkModule + " " + version + "\n")}
	if o.Checkout == "" {
		return files, nil
	}
	own, err := os.ReadFile(filepath.Join(o.Checkout, "go.mod"))
	line := goLine.Find(own)
	if err != nil || !bytes.HasPrefix(own, []byte("module "+sdkModule+"\n")) || line == nil {
		return nil, app.Usagef("invalid --sdk %q: not a checkout of amux", o.Checkout).WithHint("name the folder with amux's go.mod")
	}
	checkout := strconv.Quote(o.Checkout)
	files["go.work"] = fmt.Appendf(nil, "%s\n\nuse (\n\t.\n\t%s\n)\n\nreplace %s %s => %s\n", line, checkout, sdkModule, version, checkout)
	return files, nil
}

// writeNew writes files into a new folder. After an error the folder is gone.
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
