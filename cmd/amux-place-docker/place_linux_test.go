package main

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// told is AMUX_PLACE with options.
func told(t *testing.T, options ...string) string {
	t.Helper()
	all := map[string]string{"image": "agent"}
	for i := 0; i < len(options); i += 2 {
		all[options[i]] = options[i+1]
	}
	text, err := json.Marshal(map[string]any{"name": "box", "owner": "me", "options": all})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func read(t *testing.T, options ...string) place {
	t.Helper()
	p, err := readPlace(told(t, options...), "/run/mine")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// args are in the words of docker run.
func args(words ...string) string {
	text, _ := json.Marshal(words)
	return string(text)
}

// Options that make no sense are refused before the engine is asked.
func TestOptions(t *testing.T) {
	for _, e := range []struct {
		options []string
		says    string
	}{
		{[]string{"image", ""}, `the option image = "": it is no name of an image`},
		{[]string{"image", "UPPER"}, `the option image = "UPPER": it is no name of an image`},
		{[]string{"engine", "nerdctl"}, `engine = "nerdctl" is neither docker nor podman`},
		{[]string{"host", "here"}, `the option host = "here": it is no address`},
		{[]string{"host", "unix:///a", "context", "b"}, "it has both the options host and context"},
		{[]string{"engine", "podman", "context", "b"}, "the option context is for docker"},
		{[]string{"certs", "/a"}, "the option certs is for host"},
		{[]string{"certs", "a", "host", "tcp://b:1"}, `the option certs = "a": it is not absolute`},
		{[]string{"nodes", "3"}, `the option "nodes" is not known: certs, context, host are`},
		{[]string{"args", "--memory"}, `the option args = "--memory": `},
		{[]string{"args", args("--entrypoint", "cat")}, "args: --entrypoint cannot be set: amux decides"},
		{[]string{"args", args("--rm")}, "args: --rm cannot be set: "},
		{[]string{"args", args("-t")}, "args: -t cannot be set: "},
		{[]string{"args", args("--publish", "80:80")}, "args: --publish is not known; of docker run's flags these are: --add-host "},
		{[]string{"args", args("image")}, `args: "image" is no flag of docker run`},
		{[]string{"args", args("--memory", "lots")}, `args: invalid argument "lots" for "-m, --memory" flag: `},
		{[]string{"args", args("--pull", "often")}, "args: --pull=often: always, missing and never are known"},
		{[]string{"args", args("-v", "./a:/b")}, "args: --volume=./a:/b: it is /FOLDER:/FOLDER or NAME:/FOLDER"},
		{[]string{"args", args("-v", "/a")}, "args: --volume=/a: "},
		{[]string{"args", args("--dns", "here")}, "args: --dns=here: "},
		{[]string{"args", args("--platform", "linux")}, "args: --platform=linux: it is OS/ARCH"},
		{[]string{"args", args("--network", "none", "--network", "mine")}, "args: --network=none goes with no other network"},
		{[]string{"args", args("--env-file", "/no/such/file")}, "args: --env-file: "},
		{[]string{"args", args("--security-opt", "seccomp=/no/such/file")}, "args: --security-opt: open /no/such/file: "},
	} {
		if _, err := readPlace(told(t, e.options...), ""); err == nil || !strings.HasPrefix(err.Error(), e.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", e.options, err)
		}
	}
	if _, err := readPlace("{", ""); err == nil || !strings.HasPrefix(err.Error(), "AMUX_PLACE is missing") {
		t.Error(err)
	}
}

// What every run has in its container, and what args add.
func TestMade(t *testing.T) {
	t.Setenv("OF_MINE", "a value")
	profile := filepath.Join(t.TempDir(), "profile")
	if err := os.WriteFile(profile, []byte("{\n \"defaultAction\": \"SCMP_ACT_ALLOW\"\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const run = "01JZZZZZZZZZZZZZZZZZZZZZZZ"
	config, host := read(t).made(run, "/work", "1000:100", "keep-id")
	if config.Image != "agent" || config.User != "1000:100" || config.WorkingDir != "/work" || !slices.Equal(config.Env, []string{"HOME=/home/amux"}) ||
		!reflect.DeepEqual(config.Labels, map[string]string{"dev.amux.run": run, "dev.amux.owner": "me"}) || !slices.Equal(config.Entrypoint, []string{"sleep"}) {
		t.Errorf("%+v", config)
	}
	if !*host.Init || host.UsernsMode != "keep-id" || len(host.Mounts) != 1 || host.Mounts[0].Source != "/work" || host.Tmpfs["/home/amux"] != "exec,mode=1777" {
		t.Errorf("%+v", host)
	}
	if _, host := read(t).made(run, "", "1000:100", ""); host.Mounts != nil {
		t.Errorf("a folder for a run that has none: %+v", host.Mounts)
	}
	p := read(t, "args", args("--memory", "4g", "--cpus=1.5", "-v", "/a:/b:ro", "--volume", "cache:/c", "--mount", "type=tmpfs,target=/d", "--network", "mine", "-e", "OF_MINE", "--env", "NONE_OF_MINE",
		"-e", "A=b c", "--user", "7", "--userns", "host", "--label", "x=y", "--label", "dev.amux.run=no", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--security-opt", "seccomp="+profile, "--tmpfs",
		"/home/amux:size=1g", "--pids-limit", "100", "--gpus", "all", "--device", "/dev/x:/dev/y:r", "--ulimit", "nofile=10:20", "--dns", "10.0.0.1", "--platform", "linux/arm64/v8", "--pull=always", "--init"))
	for range 2 { // for one run as for the next
		config, host = p.made(run, "/work", "1000:100", "keep-id")
		if config.User != "7" || host.UsernsMode != "host" || host.Memory != 4<<30 || host.NanoCPUs != 15e8 || *host.PidsLimit != 100 || host.NetworkMode != "mine" {
			t.Errorf("%+v %+v", config, host)
		}
		if !slices.Equal(config.Env, []string{"HOME=/home/amux", "OF_MINE=a value", "A=b c"}) || config.Labels["x"] != "y" || config.Labels["dev.amux.run"] != run {
			t.Errorf("%q %q", config.Env, config.Labels)
		}
		if !slices.Equal(host.Binds, []string{"/a:/b:ro", "cache:/c"}) || len(host.Mounts) != 2 || host.Tmpfs["/home/amux"] != "size=1g" {
			t.Errorf("%q %+v %q", host.Binds, host.Mounts, host.Tmpfs)
		}
		if !slices.Equal(host.SecurityOpt, []string{"no-new-privileges", `seccomp={"defaultAction":"SCMP_ACT_ALLOW"}`}) || !slices.Equal(host.CapDrop, []string{"ALL"}) {
			t.Errorf("%q %q", host.SecurityOpt, host.CapDrop)
		}
		if d := host.Devices; len(d) != 1 || d[0] != (container.DeviceMapping{PathOnHost: "/dev/x", PathInContainer: "/dev/y", CgroupPermissions: "r"}) || len(host.DeviceRequests) != 1 || len(host.Ulimits) != 1 {
			t.Errorf("%+v %+v %+v", d, host.DeviceRequests, host.Ulimits)
		}
	}
	if p.flags.networks["mine"] == nil || p.flags.platform.Variant != "v8" || p.flags.pull != "always" || host.DNS[0].String() != "10.0.0.1" {
		t.Errorf("%+v", p.flags)
	}
}

// The page of containers names the flags that there are.
func TestFlagsOfPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/places/container.md")
	if err != nil {
		t.Fatal(err)
	}
	_, listed, _ := strings.Cut(string(page), "`args` may have these flags")
	listed, _, _ = strings.Cut(listed, "Another one is refused")
	_, err = readPlace(told(t, "args", args("--publish=1")), "")
	_, known, _ := strings.Cut(err.Error(), " these are: ")
	for _, flag := range strings.Fields(known) {
		if !strings.Contains(listed, "`"+flag+"`") && flag != "--init" && flag != "--net" {
			t.Errorf("%s is not on the page", flag)
		}
	}
	if named := strings.Count(listed, "`--"); named != len(strings.Fields(known))-2 {
		t.Errorf("the page has %d flags, and there are %d", named, len(strings.Fields(known))-2)
	}
}

// The engine is what the options say, else the environment, else docker's settings; and a run keeps
// to the one that it began with.
func TestEndpoint(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_TLS", "DOCKER_CERT_PATH", "CONTAINER_HOST"} {
		t.Setenv(name, "")
	}
	t.Setenv("DOCKER_CONFIG", home)
	t.Setenv("XDG_RUNTIME_DIR", home)
	write := func(current string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(home, "config.json"), []byte(`{"currentContext":"`+current+`"}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range []struct {
		env, options []string
		current      string
		pins         string
	}{
		{nil, nil, "", "host=unix:///var/run/docker.sock"},
		{nil, nil, "theirs", "context=theirs"},
		{nil, nil, "default", "host=unix:///var/run/docker.sock"},
		{[]string{"DOCKER_CONTEXT=mine"}, nil, "theirs", "context=mine"},
		{[]string{"DOCKER_HOST=unix:///a", "DOCKER_CONTEXT=mine"}, nil, "theirs", "host=unix:///a"},
		{[]string{"DOCKER_HOST=tcp://a:1", "DOCKER_TLS_VERIFY=1"}, nil, "", "host=tcp://a:1 certs=" + os.Getenv("DOCKER_CONFIG")},
		{[]string{"DOCKER_HOST=tcp://a:1", "DOCKER_CERT_PATH=/k"}, nil, "", "host=tcp://a:1"},
		{[]string{"DOCKER_HOST=tcp://a:1", "DOCKER_CERT_PATH=/k", "DOCKER_TLS=1"}, nil, "", "host=tcp://a:1 certs=/k"},
		{[]string{"DOCKER_HOST=unix:///a"}, []string{"context", "mine"}, "", "context=mine"},
		{[]string{"DOCKER_HOST=unix:///a"}, []string{"context", "default"}, "theirs", "host=unix:///var/run/docker.sock"},
		{[]string{"DOCKER_HOST=unix:///a"}, []string{"host", "tcp://b:1", "certs", "/c"}, "theirs", "host=tcp://b:1 certs=/c"},
		{[]string{"DOCKER_HOST=unix:///a", "CONTAINER_HOST=unix:///p"}, []string{"engine", "podman"}, "theirs", "host=unix:///p"},
	} {
		t.Run(strings.Join(append(e.env, e.options...), " ")+e.current, func(t *testing.T) {
			for _, v := range e.env {
				name, value, _ := strings.Cut(v, "=")
				t.Setenv(name, value)
			}
			write(e.current)
			p := read(t, e.options...)
			at, err := p.endpoint()
			if err != nil {
				t.Fatal(err)
			}
			if pins := strings.Join(at.pins(), " "); pins != e.pins {
				t.Errorf("%q, not %q", pins, e.pins)
			}
			for _, pin := range at.pins() { // read again after another choice
				name, value, _ := strings.Cut(pin, "=")
				if !slices.Contains(e.options, name) { // what the user has set stays
					e.options = append(e.options, name, value)
				}
			}
			t.Setenv("DOCKER_HOST", "unix:///other")
			t.Setenv("CONTAINER_HOST", "unix:///other")
			write("other")
			if again, err := read(t, e.options...).endpoint(); err != nil || again != at {
				t.Errorf("later it is %+v, not %+v: %v", again, at, err)
			}
		})
	}
	if _, err := os.Stat("/run/podman/podman.sock"); err != nil && os.Getuid() == 0 {
		at, err := read(t, "engine", "podman").endpoint()
		if err != nil || !at.service || at.host != "unix:///run/mine/podman.sock" || at.pins() != nil {
			t.Errorf("podman without a socket: %+v, %v", at, err)
		}
	}
}

// Keys for an engine, and a context that is not there, are looked for before anything is asked.
func TestConnect(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	for says, at := range map[string]endpoint{
		`context "mine": context not found`: {context: "mine"},
		"ca.pem":                            {host: "tcp://127.0.0.1:1", certs: "/no/such/folder"},
	} {
		if _, err := read(t).connect(at); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v", at, err)
		}
	}
	if _, err := read(t, "engine", "podman").connect(endpoint{host: "ssh://there"}); err == nil {
		t.Error("podman by ssh is not refused")
	}
}

// fake is an engine that says of itself what it is.
func fake(t *testing.T, server, info string) *engine {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "amux-fake") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	answers := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", server)
		w.Header().Set("Api-Version", "1.41")
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/info") {
			if info == "" {
				w.WriteHeader(http.StatusInternalServerError)
				info = `{"message":"it cannot say"}`
			}
			_, _ = w.Write([]byte(info))
		}
	}))
	answers.Listener = l
	answers.Start()
	t.Cleanup(answers.Close)
	p := read(t, "host", "unix://"+socket)
	of, done, err := (&clients{}).open(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	e := of.(*engine)
	if _, err := e.Ping(t.Context(), client.PingOptions{}); err != nil {
		t.Fatal(err)
	}
	return e
}

// Who the agent is in a container depends on what the engine makes of users.
func TestUser(t *testing.T) {
	const rootless = `{"SecurityOptions":["name=seccomp,profile=builtin","name=rootless"]}`
	for what, c := range map[string]struct {
		server, info string
		uid          int
		user         string
		userns       container.UsernsMode
	}{
		"docker":                 {"Docker/28.2", `{"SecurityOptions":["name=seccomp,profile=builtin"]}`, 1000, "1000:100", ""},
		"docker without root":    {"Docker/28.2", rootless, 1000, "0:0", ""},
		"root, who is not asked": {"Docker/28.2", rootless, 0, "0:100", ""},
		"podman of root":         {"Libpod/4.3.1 (linux)", "", 0, "0:100", ""},
	} {
		user, userns, err := fake(t, c.server, c.info).user(t.Context(), c.uid, 100)
		if err != nil || user != c.user || userns != c.userns {
			t.Errorf("%s: %q %q %v", what, user, userns, err)
		}
	}
	if _, _, err := fake(t, "Docker/28.2", "").user(t.Context(), 1000, 100); err == nil || err.Error() != "it cannot say" {
		t.Errorf("no answer: %v", err)
	}
	user, userns, err := fake(t, "Libpod/4.3.1 (linux)", "").user(t.Context(), 1000, 100)
	if want := map[bool]container.UsernsMode{true: "", false: "keep-id"}[os.Getuid() == 0]; err != nil || user != "1000:100" || userns != want {
		t.Errorf("podman whose socket is %d's: %q %q %v", os.Getuid(), user, userns, err)
	}
}
