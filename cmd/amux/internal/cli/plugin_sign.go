package cli

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

func newPluginSign(s *session) *cobra.Command {
	var key, passwordFile, generate string
	var noPassword bool
	cmd := &cobra.Command{
		Use:   "sign [DIR] --key FILE",
		Short: "Sign a release, or make a key to sign with",
		Long: `Sign the release in a folder (default dist) with a secret key of minisign; the
signature names plugin and version. --generate NAME makes a key: NAME.key is yours
alone, NAME.pub is for those who install. The tool minisign can do both as well:

  minisign -S -s KEY -m SHA256SUMS -t "amux-plugin NAME VERSION"`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case generate != "" && (key != "" || len(args) > 0):
				return usage("--generate makes a key; sign with it afterwards")
			case generate == "" && key == "":
				return usage("amux plugin sign needs --key").WithHint("make one: amux plugin sign --generate NAME")
			case len(args) > 1:
				return exactly("a folder")(cmd, args)
			}
			return nil
		},
		RunE: command(func(_ *cobra.Command, args []string) error {
			if generate != "" {
				return s.generateKey(s.abs(generate), passwordFile, noPassword)
			}
			dir := s.abs("dist")
			if len(args) == 1 {
				dir = s.abs(args[0])
			}
			return s.sign(dir, s.abs(key), passwordFile)
		}),
	}
	cmd.Flags().StringVar(&key, "key", "", "the `FILE` with the secret key")
	cmd.Flags().StringVar(&generate, "generate", "", "make the key pair `NAME`.key and NAME.pub")
	cmd.Flags().StringVar(&passwordFile, "password-file", "", "the `FILE` with the key's password; else it is asked for")
	cmd.Flags().BoolVar(&noPassword, "no-password", false, "leave the new key unencrypted, with --generate")
	return cmd
}

// password reads the key's password from a file or the terminal; the function is
// nil if there is neither.
func (s *session) password(file, prompt string) func() (string, error) {
	if file != "" {
		return func() (string, error) {
			data, err := readSecret(s.abs(file))
			if err != nil {
				return "", pluginapi.Errorf(pluginapi.CodeValidation, "--password-file: %w", err)
			}
			line, _, _ := strings.Cut(string(data), "\n")
			return strings.TrimSuffix(line, "\r"), nil
		}
	}
	if s.app.IO.ReadPassword == nil || !s.somebody() {
		return nil
	}
	return func() (string, error) {
		password, err := s.app.IO.ReadPassword(prompt)
		if err != nil {
			return "", pluginapi.Errorf(pluginapi.CodeValidation, "no password was typed")
		}
		return password, nil
	}
}

// readSecret reads a file that the user names. It may be a pipe, as of <(pass show key).
func readSecret(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return foreign.ReadStream(f, 64<<10)
}

func (s *session) sign(dir, keyFile, passwordFile string) error {
	name, version, sums, err := install.Release(dir)
	if err != nil {
		return err
	}
	text, err := readSecret(keyFile)
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeValidation, "--key: %w", err).WithHint("make one: amux plugin sign --generate NAME")
	}
	key, err := install.ParsePrivateKey(text, s.password(passwordFile, "password of "+keyFile+": "))
	if err != nil {
		e := pluginapi.AsError(err)
		return &pluginapi.Error{Code: e.Code, Msg: keyFile + ": " + e.Msg, Hint: e.Hint}
	}
	if err := install.WriteSignature(dir, install.Sign(key, name, version, sums)); err != nil {
		return err
	}
	s.errf("signed %s %s with %s", name, version, install.ShortKey(install.PublicKey(key)))
	s.errf("who installs it, trusts the key first: amux plugin trust add PUBLISHER %s --names %s", install.PublicKey(key), name)
	return nil
}

func (s *session) generateKey(name, passwordFile string, noPassword bool) error {
	for _, path := range []string{name + ".key", name + ".pub"} {
		if _, err := os.Lstat(path); err == nil {
			return pluginapi.Errorf(pluginapi.CodeValidation, "%s exists already, and a key is never overwritten", path)
		}
	}
	secretWord := ""
	if !noPassword {
		ask := s.password(passwordFile, "new password: ")
		if ask == nil {
			return usage("nobody can be asked for a password here").WithHint("--password-file FILE, or --no-password")
		}
		var err error
		if secretWord, err = ask(); err != nil {
			return err
		}
		if secretWord == "" {
			return usage("the password is empty").WithHint("to have none on purpose: --no-password")
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
	s.errf("%s.key is secret, keep it; give %s to those who install", name, filepath.Base(name)+".pub")
	return nil
}
