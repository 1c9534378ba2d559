package install

import (
	"fmt"
	"strconv"
	"strings"

	"aead.dev/minisign"

	"github.com/amux-dev/amux/pluginapi"
)

// GenerateKey makes a publisher's key pair as minisign's files have it. An empty
// password leaves the secret key unencrypted.
func GenerateKey(password string) (public, secret []byte, _ error) {
	pub, sec, err := minisign.GenerateKey(nil)
	if err != nil {
		return nil, nil, err
	}
	if public, err = pub.MarshalText(); err != nil {
		return nil, nil, err
	}
	if password != "" {
		secret, err = minisign.EncryptKey(password, sec)
	} else {
		secret, err = sec.MarshalText()
	}
	return withNewline(public), withNewline(secret), err
}

func withNewline(text []byte) []byte {
	return append([]byte(strings.TrimRight(string(text), "\n")), '\n')
}

// ParsePrivateKey reads a secret key of minisign. password is asked for one that
// is encrypted; nil: nobody can be asked.
func ParsePrivateKey(text []byte, password func() (string, error)) (minisign.PrivateKey, error) {
	var key minisign.PrivateKey
	if !minisign.IsEncrypted(text) {
		if err := key.UnmarshalText(text); err != nil {
			return key, pluginapi.Errorf(pluginapi.CodeValidation, "it is no secret key of minisign")
		}
		return key, nil
	}
	if password == nil {
		return key, pluginapi.Errorf(pluginapi.CodeValidation, "the key is encrypted, and nobody can be asked for its password").
			WithHint("give it in a file by --password-file")
	}
	secret, err := password()
	if err != nil {
		return key, err
	}
	if key, err = minisign.DecryptKey(secret, text); err != nil {
		return key, pluginapi.Errorf(pluginapi.CodeValidation, "the password of the key is wrong")
	}
	return key, nil
}

// PublicKey is the public half of a key, as one line.
func PublicKey(key minisign.PrivateKey) string {
	return fmt.Sprint(key.Public())
}

// KeyID is a key's short name, as minisign shows it.
func KeyID(public minisign.PublicKey) string {
	return strings.ToUpper(strconv.FormatUint(public.ID(), 16))
}
