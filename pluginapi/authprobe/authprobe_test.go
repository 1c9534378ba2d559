package authprobe

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/amux-dev/amux/pluginapi"
)

var now = time.UnixMilli(1_800_000_000_000)

type (
	probe = pluginapi.AuthProbe
	state = pluginapi.AuthState
)

func TestEvaluate(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write := func(name, content string) {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(".a/creds.json", `{"oauth":{"token":"sk-SECRET","exp":1900000000000,"old":1700000000000,"sec":1900000000,"iso":"2050-01-01T00:00:00Z","empty":""},"list":[{"k":"SECRET"}],"no":null,"off":false}`)
	write(".a/broken.json", `{"token":"SECRET`)
	write(".a/empty", "")
	write(".a/token", "SECRET")
	write(".a/big", string(bytes.Repeat([]byte("S"), MaxFile+1)))
	write("alt/creds.json", `{"token":"SECRET"}`)
	caller := &pluginapi.Caller{
		Home: home, Cwd: home, Os: runtime.GOOS,
		Env: map[string]string{"KEY": "SECRET", "FLAG": "1", "EMPTY": "", "ALT": filepath.Join(home, "alt")},
	}
	const at = "~/.a/creds.json"
	for name, test := range map[string]struct {
		probes []*probe
		want   []*state
	}{
		"none":         {nil, nil},
		"env":          {[]*probe{{Method: "api_key", Provider: "p", Env: "KEY"}}, []*state{{Provider: "p", Status: Authenticated, Method: "api_key", Found: "env KEY"}}},
		"env empty":    {[]*probe{{Env: "EMPTY"}}, []*state{{Status: Unauthenticated}}},
		"env absent":   {[]*probe{{Env: "NONE"}}, []*state{{Status: Unauthenticated}}},
		"env value":    {[]*probe{{Env: "FLAG", EnvValue: "1"}}, []*state{{Status: Authenticated, Found: "env FLAG"}}},
		"other value":  {[]*probe{{Env: "FLAG", EnvValue: "2"}}, []*state{{Status: Unauthenticated}}},
		"nothing":      {[]*probe{{Method: "x"}}, []*state{{Status: Unauthenticated}}},
		"file":         {[]*probe{{File: "~/.a/token"}}, []*state{{Status: Authenticated, Found: "~/.a/token"}}},
		"empty file":   {[]*probe{{File: "~/.a/empty"}}, []*state{{Status: Unauthenticated}}},
		"no file":      {[]*probe{{File: "~/.a/none"}}, []*state{{Status: Unauthenticated}}},
		"folder":       {[]*probe{{File: "~/.a"}}, []*state{{Status: Unknown, Found: "~/.a"}}},
		"big file":     {[]*probe{{File: "~/.a/big"}}, []*state{{Status: Authenticated, Found: "~/.a/big"}}},
		"big JSON":     {[]*probe{{File: "~/.a/big", JsonPath: "x"}}, []*state{{Status: Unknown, Found: "~/.a/big"}}},
		"path":         {[]*probe{{File: at, JsonPath: "oauth.token"}}, []*state{{Status: Authenticated, Found: at}}},
		"path in list": {[]*probe{{File: at, JsonPath: "list.0.k"}}, []*state{{Status: Authenticated, Found: at}}},
		"path absent":  {[]*probe{{File: at, JsonPath: "oauth.x.y"}}, []*state{{Status: Unauthenticated}}},
		"path empty":   {[]*probe{{File: at, JsonPath: "oauth.empty"}}, []*state{{Status: Unauthenticated}}},
		"path null":    {[]*probe{{File: at, JsonPath: "no"}}, []*state{{Status: Unauthenticated}}},
		"path false":   {[]*probe{{File: at, JsonPath: "off"}}, []*state{{Status: Unauthenticated}}},
		"broken":       {[]*probe{{File: "~/.a/broken.json", JsonPath: "token"}}, []*state{{Status: Unknown, Found: "~/.a/broken.json"}}},
		"expiry":       {[]*probe{{File: at, ExpiryJsonPath: "oauth.exp"}}, []*state{{Status: Authenticated, Found: at, ExpiresUnixMs: 1900000000000}}},
		"seconds":      {[]*probe{{File: at, ExpiryJsonPath: "oauth.sec"}}, []*state{{Status: Authenticated, Found: at, ExpiresUnixMs: 1900000000000}}},
		"text":         {[]*probe{{File: at, ExpiryJsonPath: "oauth.iso"}}, []*state{{Status: Authenticated, Found: at, ExpiresUnixMs: 2524608000000}}},
		"expired":      {[]*probe{{File: at, JsonPath: "oauth.token", ExpiryJsonPath: "oauth.old"}}, []*state{{Status: Expired, Found: at, ExpiresUnixMs: 1700000000000}}},
		"no expiry":    {[]*probe{{File: at, JsonPath: "oauth.token", ExpiryJsonPath: "oauth.none"}}, []*state{{Status: Authenticated, Found: at}}},
		"default":      {[]*probe{{File: "${DIR:-~/.a}/creds.json"}}, []*state{{Status: Authenticated, Found: at}}},
		"variable":     {[]*probe{{File: "${ALT:-~/.a}/creds.json"}}, []*state{{Status: Authenticated, Found: "~/alt/creds.json"}}},
		"both":         {[]*probe{{Env: "FLAG", File: "$ALT/creds.json", JsonPath: "token"}}, []*state{{Status: Authenticated, Found: "env FLAG, ~/alt/creds.json"}}},
		"one of both":  {[]*probe{{Env: "NONE", File: "$ALT/creds.json"}}, []*state{{Status: Unauthenticated}}},
		"unset":        {[]*probe{{File: "$DIR/creds.json"}}, []*state{{Status: Unauthenticated}}},
		"first wins": {[]*probe{{Method: "a", Env: "KEY"}, {Method: "b", Env: "FLAG"}},
			[]*state{{Status: Authenticated, Method: "a", Found: "env KEY"}}},
		"best wins": {[]*probe{{Method: "a", File: at, ExpiryJsonPath: "oauth.old"}, {Method: "b", Env: "FLAG"}},
			[]*state{{Status: Authenticated, Method: "b", Found: "env FLAG"}}},
		"providers": {[]*probe{{Provider: "x", Env: "NONE"}, {Provider: "y", Env: "KEY"}, {Provider: "x", Env: "FLAG"}},
			[]*state{{Provider: "x", Status: Authenticated, Found: "env FLAG"}, {Provider: "y", Status: Authenticated, Found: "env KEY"}}},
	} {
		got := Evaluate(test.probes, caller, Options{Now: now})
		if diff := cmp.Diff(test.want, got, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for _, state := range got {
			if bytes.Contains([]byte(state.String()), []byte("SECRET")) {
				t.Errorf("%s tells a secret: %v", name, state)
			}
		}
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the wanted paths are Unix ones")
	}
	caller := &pluginapi.Caller{Home: "/home/u", Cwd: "/w", Os: "linux", Env: map[string]string{"A": "/a", "REL": "conf", "T": "~/x"}}
	for file, want := range map[string]string{
		"~":                     "/home/u",
		"~/x":                   "/home/u/x",
		"/x/~/y":                "/x/~/y",
		"~other/x":              "/w/~other/x",
		"$A/b":                  "/a/b",
		"${A}b":                 "/ab",
		"${B:-~/c}/d":           "/home/u/c/d",
		"${B:-${A}/c}/d":        "/a/c/d",
		"${B:-${C:-~/.x}}/auth": "/home/u/.x/auth",
		"$REL/x":                "/w/conf/x",
		"$T":                    "/w/~/x", // a shell would not expand it either
		"../x":                  "/x",
		"$B/x":                  "",
		"${A/x":                 "",
		"":                      "",
	} {
		got, ok := Expand(file, caller)
		if got != want || ok != (want != "") {
			t.Errorf("%q: %q %v, want %q", file, got, ok, want)
		}
	}
	if got := lookup(&pluginapi.Caller{Os: "windows", Env: map[string]string{"Path": "x"}}, "PATH"); got != "x" {
		t.Error("names have no case on Windows")
	}
	if _, ok := Expand("~/x", &pluginapi.Caller{}); ok {
		t.Error("no home")
	}
}

// A named pipe where a file should be must not make the answer wait.
func TestNotAFile(t *testing.T) {
	t.Parallel()
	got := Evaluate([]*probe{{File: os.DevNull}}, &pluginapi.Caller{Cwd: "/"}, Options{Now: now})
	if got[0].Status != Unknown {
		t.Error(got)
	}
}
