package plugin

import (
	"os"
	"path/filepath"
	"strings"

	"aead.dev/minisign"
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// SignOptions are what amux plugin sign needs.
type SignOptions struct {
	Print        *app.Printer
	ReadPassword func(prompt string) (string, error) // nil: nobody can be asked

	Dir          string
	KeyFile      string
	Generate     string
	PasswordFile string
	NoPassword   bool
}

// NewCmdSign makes amux plugin sign.
func NewCmdSign(a *app.App) *cobra.Command {
	o := &SignOptions{Print: a.Print}
	if a.Attended() {
		o.ReadPassword = a.IO.ReadPassword
	}
	var key, generate, passwordFile string
	cmd := &cobra.Command{
		Use:   "sign [DIR] --key FILE",
		Short: "Sign a release, or make a signing key",
		Long: `Sign the release in a folder (default dist) with a secret key of minisign. The signature
names the plugin and its version. --generate NAME makes a key: keep NAME.key secret, and
give NAME.pub to your users. The tool minisign can do both as well:

  minisign -S -s KEY -m SHA256SUMS -t "amux-plugin NAME VERSION"`,
		Example: `  amux plugin sign --generate acme
  amux plugin sign --key acme.key
  amux plugin sign ./dist --key acme.key --password-file ./password`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case generate != "" && (key != "" || len(args) > 0):
				return app.Usagef("--generate makes a key; sign with it afterwards")
			case generate == "" && key == "":
				return app.Usagef("amux plugin sign needs --key").WithHint("make a key: amux plugin sign --generate NAME")
			}
			return app.RangeArgs(0, "a folder")(cmd, args)
		},
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Generate, o.KeyFile, o.PasswordFile = a.Abs(generate), a.Abs(key), a.Abs(passwordFile)
			if o.Generate != "" {
				return generateKey(o)
			}
			o.Dir = a.Abs("dist")
			if len(args) == 1 {
				o.Dir = a.Abs(args[0])
			}
			return sign(o)
		}),
	}
	cmd.Flags().StringVar(&key, "key", "", "`FILE` with the secret key")
	cmd.Flags().StringVar(&generate, "generate", "", "make the key pair `NAME`.key and NAME.pub")
	cmd.Flags().StringVar(&passwordFile, "password-file", "", "`FILE` with the key's password; otherwise amux asks for it")
	cmd.Flags().BoolVar(&o.NoPassword, "no-password", false, "with --generate: do not encrypt the new key")
	return cmd
}

// password returns a function that reads the key's password from a file or the terminal;
// nil if there is neither.
func (o *SignOptions) password(prompt string) func() (string, error) {
	if o.PasswordFile != "" {
		return func() (string, error) {
			data, err := readSecret(o.PasswordFile)
			if err != nil {
				return "", pluginapi.Errorf(pluginapi.CodeValidation, "--password-file: %w", err)
			}
			line, _, _ := strings.Cut(string(data), "\n")
			return strings.TrimSuffix(line, "\r"), nil
		}
	}
	if o.ReadPassword == nil {
		return nil
	}
	return func() (string, error) {
		password, err := o.ReadPassword(prompt)
		if err != nil {
			return "", pluginapi.Errorf(pluginapi.CodeValidation, "no password typed")
		}
		return password, nil
	}
}

// readSecret reads a file that the user names. It may be a pipe, such as <(pass show key).
func readSecret(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return foreign.ReadStream(f, 64<<10)
}

func sign(o *SignOptions) error {
	name, version, sums, err := install.Release(o.Dir)
	if err != nil {
		return err
	}
	key, err := o.secretKey()
	if err != nil {
		return err
	}
	if err := install.WriteSignature(o.Dir, install.Sign(key, name, version, sums)); err != nil {
		return err
	}
	o.Print.Notef("signed %s %s with %s", name, version, install.ShortKey(install.PublicKey(key)))
	o.Print.Notef("users trust the key before they install it: amux plugin trust add PUBLISHER %s --names %s", install.PublicKey(key), name)
	return nil
}

// secretKey reads the key that signs.
func (o *SignOptions) secretKey() (key minisign.PrivateKey, err error) {
	text, err := readSecret(o.KeyFile)
	if err != nil {
		return key, pluginapi.Errorf(pluginapi.CodeValidation, "--key: %w", err).WithHint("make a key: amux plugin sign --generate NAME")
	}
	if key, err = install.ParsePrivateKey(text, o.password("password of "+o.KeyFile+": ")); err != nil {
		e := pluginapi.AsError(err)
		return key, &pluginapi.Error{Code: e.Code, Msg: o.KeyFile + ": " + e.Msg, Hint: e.Hint}
	}
	return key, nil
}

func generateKey(o *SignOptions) error {
	name := o.Generate
	for _, path := range []string{name + ".key", name + ".pub"} {
		if _, err := os.Lstat(path); err == nil {
			return pluginapi.Errorf(pluginapi.CodeValidation, "%s already exists; amux never overwrites a key", path)
		}
	}
	secretWord := ""
	if !o.NoPassword {
		ask := o.password("new password: ")
		if ask == nil {
			return app.Usagef("no terminal to ask for a password").WithHint("use --password-file FILE or --no-password")
		}
		var err error
		if secretWord, err = ask(); err != nil {
			return err
		}
		if secretWord == "" {
			return app.Usagef("the password is empty").WithHint("for a key without a password: --no-password")
		}
	}
	public, secret, err := install.GenerateKey(secretWord)
	if err != nil {
		return err
	}
	for _, file := range []struct {
		path string
		data []byte
		mode os.FileMode
	}{{name + ".key", secret, 0o600}, {name + ".pub", public, 0o644}} {
		f, err := os.OpenFile(file.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, file.mode)
		if err == nil {
			_, err = f.Write(file.data)
			if closeErr := f.Close(); err == nil {
				err = closeErr
			}
		}
		if err != nil {
			return pluginapi.Errorf(pluginapi.CodeConfig, "%w", err)
		}
	}
	o.Print.Notef("keep %s.key secret; give %s to your users", name, filepath.Base(name)+".pub")
	return nil
}
