// Command signfile signs a file as the tool minisign does, into a file beside it. It
// signs amux's own releases, and is part of no program that is shipped.
package main

import (
	"errors"
	"fmt"
	"os"

	"aead.dev/minisign"

	"github.com/amux-dev/amux/host/install"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: signfile KEY FILE COMMENT")
		os.Exit(2)
	}
	if err := sign(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "signfile:", err)
		os.Exit(1)
	}
}

func sign(keyFile, file, comment string) error {
	text, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	key, err := install.ParsePrivateKey(text, func() (string, error) {
		return "", errors.New("the key has a password; make one without: amux plugin sign --generate NAME --no-password")
	})
	if err != nil {
		return fmt.Errorf("%s: %w", keyFile, err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file+".minisig", minisign.SignWithComments(key, data, comment, "signature of amux's release"), 0o644)
}
