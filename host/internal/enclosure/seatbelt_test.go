//go:build unix

package enclosure

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// list is an expression of the profile's language: a word, or several expressions.
type list struct {
	word string
	all  []list
}

var token = regexp.MustCompile(`#?"(?:[^"\\]|\\.)*"|[()]|[^\s()"]+`)

// parse reads all expressions of a profile.
func parse(t *testing.T, profile string) (rules []list) {
	t.Helper()
	stack := []list{{}}
	for _, word := range token.FindAllString(profile, -1) {
		switch last := len(stack) - 1; word {
		case "(":
			stack = append(stack, list{})
		case ")":
			if last == 0 {
				t.Fatalf("a bracket too many: %s", profile)
			}
			stack[last-1].all = append(stack[last-1].all, stack[last])
			stack = stack[:last]
		default:
			stack[last].all = append(stack[last].all, list{word: word})
		}
	}
	if len(stack) != 1 {
		t.Fatalf("a bracket too few: %s", profile)
	}
	return stack[0].all
}

// A request is what a program asks the kernel for.
type request struct{ does, kind, at string }

// matches reports whether a filter is about a request.
func (l list) matches(t *testing.T, r request) bool {
	t.Helper()
	switch name := l.all[0].word; name {
	case "subpath", "literal", "global-name", "regex":
		text := strings.TrimPrefix(l.all[1].word, "#")
		if name != "regex" {
			var err error
			if text, err = strconv.Unquote(text); err != nil {
				t.Fatalf("%s: %v", l.all[1].word, err)
			}
		}
		switch name {
		case "subpath":
			return within(r.at, text)
		case "regex":
			return regexp.MustCompile(strings.Trim(text, `"`)).MatchString(r.at)
		}
		return r.at == text
	case "remote", "local":
		if l.all[1].word != r.kind {
			return false
		}
		if what := l.all[2]; what.all != nil && what.all[0].word == "string-append" {
			return r.at == "localhost:WAY_OUT"
		} else if what.all != nil {
			return what.matches(t, r)
		} else {
			return what.word == `"*:*"` || what.word == `"`+r.at+`"`
		}
	case "target":
		return r.at == l.all[1].word
	}
	t.Fatalf("an unknown filter: %+v", l)
	return false
}

// allows is what macOS makes of a profile: the last rule that is about a request counts.
func allows(t *testing.T, rules []list, r request) (yes bool) {
	t.Helper()
	for _, rule := range rules {
		if word := rule.all[0].word; word != "allow" && word != "deny" {
			continue
		}
		about, filters, fits := false, 0, false
		for _, part := range rule.all[1:] {
			if part.all == nil {
				about = about || part.word == "default" || part.word == r.does || strings.HasSuffix(part.word, "*") && strings.HasPrefix(r.does, strings.TrimSuffix(part.word, "*"))
				continue
			}
			filters++
			fits = fits || part.matches(t, r)
		}
		if about && (filters == 0 || fits) {
			yes = rule.all[0].word == "allow"
		}
	}
	return yes
}

// What a program may do on macOS, by the profile: that macOS reads it so, nothing here shows.
func TestProfile(t *testing.T) {
	t.Parallel()
	root := tree(t, `home/w"(x)\/.git/HEAD`, "home/.agent/", "home/.ssh/id", "home/r/f", "home/w2/conf/", "socket")
	home, work := root+"/home", root+`/home/w"(x)\`
	s := Setting{
		Home: home, Cwd: work, TempDir: root + "/socket", Needs: []string{home + "/.agent/"}, Dirs: []string{home + "/w2"}, Hidden: []string{home + "/w2/conf"},
		Maker: "/usr/bin/sandbox-exec", Helper: root + "/amux-sandbox",
	}
	type network struct{ other, wayOut, port, names bool }
	for _, net := range []struct {
		hosts []string
		has   network
	}{
		{nil, network{other: true, wayOut: true, port: true, names: true}},
		{[]string{"none"}, network{}},
		{[]string{"a.example", "localhost:8080"}, network{wayOut: true, port: true}},
	} {
		p := Policy{Network: net.hosts, Read: []string{home + "/r"}}
		mounts, err := p.mounts(s)
		if err != nil {
			t.Fatal(err)
		}
		command, err := p.seatbelt(s, mounts, []string{"agent", "a b"})
		if err != nil {
			t.Fatal(err)
		}
		at := slices.Index(command, "/usr/bin/sandbox-exec")
		if at < 0 || command[at+1] != "-p" || !slices.Equal(command[at+3:], []string{"agent", "a b"}) {
			t.Fatalf("%q", command)
		}
		if gated := len(net.hosts) == 2; gated != (at > 0) || gated && !slices.Equal(command[:at], []string{s.Helper, "around", "--allow", "a.example", "--allow", "localhost:8080", "--"}) {
			t.Errorf("%q", command[:at])
		}
		rules := parse(t, command[at+2])
		for r, want := range map[request]bool{
			{"file-read-data", "", work + "/a"}:                             true,
			{"file-write-create", "", work + "/a"}:                          true,
			{"file-write-data", "", work + "/.git/hooks/pre-commit"}:        false,
			{"file-read-data", "", work + "/.git/HEAD"}:                     true,
			{"file-write-data", "", root + "/socket/x"}:                     true,
			{"file-write-data", "", home + "/.agent/s"}:                     true,
			{"file-read-data", "", home + "/.ssh/id"}:                       false,
			{"file-read-metadata", "", home + "/.ssh/id"}:                   false,
			{"file-read-data", "", home}:                                    false,
			{"file-read-metadata", "", home}:                                true,
			{"file-write-create", "", home + "/x"}:                          false,
			{"file-read-data", "", home + "/r/f"}:                           true,
			{"file-write-data", "", home + "/r/f"}:                          false,
			{"file-write-data", "", home + "/w2/f"}:                         true,
			{"file-read-data", "", home + "/w2/conf/config.toml"}:           false,
			{"file-write-data", "", home + "/w2/conf/config.toml"}:          false,
			{"file-read-data", "", "/etc/passwd"}:                           true,
			{"file-write-data", "", "/etc/passwd"}:                          false,
			{"file-write-data", "", "/dev/null"}:                            true,
			{"file-write-data", "", "/dev/disk0"}:                           false,
			{"file-write-data", "", "/dev/ttys003"}:                         true,
			{"process-exec", "", "/bin/ls"}:                                 true,
			{"signal", "", "same-sandbox"}:                                  true,
			{"signal", "", "others"}:                                        false,
			{"process-info-pidinfo", "", "others"}:                          false,
			{"mach-lookup", "", "com.apple.trustd"}:                         true,
			{"mach-lookup", "", "com.apple.coreservices.launchservicesd"}:   false,
			{"mach-lookup", "", "com.apple.securityd.xpc"}:                  false,
			{"appleevent-send", "", "com.apple.finder"}:                     false,
			{"job-creation", "", ""}:                                        false,
			{"network-outbound", "ip", "203.0.113.1:443"}:                   net.has.other,
			{"network-outbound", "ip", "localhost:9"}:                       net.has.other,
			{"network-outbound", "ip", "localhost:WAY_OUT"}:                 net.has.wayOut,
			{"network-outbound", "ip", "localhost:8080"}:                    net.has.port,
			{"network-outbound", "", "/private/var/run/mDNSResponder"}:      net.has.names,
			{"network-outbound", "unix-socket", "/private/var/run/docker"}:  false,
			{"network-outbound", "unix-socket", work + "/s"}:                true,
			{"network-inbound", "unix-socket", root + "/socket/s"}:          true,
			{"network-outbound", "unix-socket", home + "/.ssh/agent.sock"}:  false,
			{"network-outbound", "unix-socket", home + "/w2/conf/api.sock"}: false,
		} {
			if got := allows(t, rules, r); got != want {
				t.Errorf("network %q: %+v: allowed %t", net.hosts, r, got)
			}
		}
	}
}
