package authprobe

import (
	"slices"
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

// Whatever a plugin's probe asks and a credentials file holds, there is one answer, and
// the value of no variable is in it.
func FuzzEvaluate(f *testing.F) {
	f.Add("~/${DIR:-.a}/creds.json", "oauth.token", "oauth.exp", []byte(`{"oauth":{"token":"t","exp":1900000000000}}`))
	f.Add("$DIR/x", "a.0", "a.1", []byte(`{"a":["","2050-01-01T00:00:00Z"]}`))
	f.Add("${A:-${B:-~/x}}", "", "e", []byte(`{"e":"NaN"}`))
	f.Fuzz(func(t *testing.T, file, path, expiry string, content []byte) {
		if strings.Contains(file, "secret-value") {
			t.Skip("it is in the probe itself")
		}
		caller := &pluginapi.Caller{Home: "/home/u", Cwd: "/work", Env: map[string]string{"KEY": "secret-value", "DIR": "/d"}}
		states := Evaluate([]*probe{{Provider: "p", Method: "m", Env: "KEY", File: file, JsonPath: path, ExpiryJsonPath: expiry}}, caller,
			Options{Now: now, ReadFile: func(string) ([]byte, error) { return content, nil }})
		if len(states) != 1 || !slices.Contains([]string{Authenticated, Unauthenticated, Expired, Unknown}, states[0].Status) {
			t.Fatalf("states %v", states)
		}
		if strings.Contains(states[0].Found, "secret-value") && !strings.Contains(file, "KEY") {
			t.Errorf("found %q", states[0].Found)
		}
	})
}
