package enclosure

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/internal/egress"
)

// seatbelt is the command that has macOS keep an agent to a profile.
func (p Policy) seatbelt(s Setting, mounts []mount, agent []string) ([]string, error) {
	profile, err := p.profile(s, mounts)
	if err != nil {
		return nil, err
	}
	command := slices.Concat([]string{s.Maker, "-p", profile}, agent)
	if p.network() != gated {
		return command, nil
	}
	around := []string{s.Helper, "around"}
	for _, text := range p.hosts() {
		around = append(around, "--allow", text)
	}
	return slices.Concat(around, []string{"--"}, command), nil
}

// services are those of the system that programs ask: for users and groups, names of hosts,
// certificates, settings, the log, changed files. What starts programs is not among them, nor what
// has the user's passwords.
var services = []string{
	"com.apple.system.opendirectoryd.libinfo", "com.apple.system.opendirectoryd.membership", "com.apple.system.notification_center", "com.apple.system.logger",
	"com.apple.logd", "com.apple.logd.events", "com.apple.diagnosticd", "com.apple.bsd.dirhelper", "com.apple.cfprefsd.agent", "com.apple.cfprefsd.daemon",
	"com.apple.trustd", "com.apple.trustd.agent", "com.apple.ocspd", "com.apple.networkd", "com.apple.SystemConfiguration.configd",
	"com.apple.SystemConfiguration.DNSConfiguration", "com.apple.dnssd.service", "com.apple.FSEvents", "com.apple.PowerManagement.control",
}

// base is what every profile begins with. Of several rules that are about the same the last counts.
const base = `(version 1)
(deny default)
(allow process-exec* process-fork)
(allow process-info* signal (target same-sandbox))
(allow sysctl-read user-preference-read ipc-posix-sem ipc-posix-shm* pseudo-tty)
(allow file-read* file-test-existence file-map-executable)
(allow file-write-data file-ioctl (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/dtracehelper") (regex #"^/dev/(ttys|fd/)[0-9]+$"))
`

// wayOut is the parameter of the profile that amux-sandbox sets: the port of the way out.
const wayOut = "WAY_OUT"

// profile is what the kernel is told, in the language of sandbox-exec.
func (p Policy) profile(s Setting, mounts []mount) (string, error) {
	var b strings.Builder
	b.WriteString(base)
	rule := func(words ...string) { b.WriteString("(" + strings.Join(words, " ") + ")\n") }
	rule("allow", "mach-lookup "+named("global-name", services))
	passed := map[string]bool{} // folders on the way to what is shown
	for _, m := range mounts {
		at := named("subpath", []string{m.path})
		sockets := func(word string) {
			rule(word, "network-outbound (remote unix-socket", at+")")
			rule(word, "network-bind network-inbound (local unix-socket", at+")")
		}
		switch m.view {
		case hidden:
			rule("deny", "file-read* file-write* file-map-executable", at)
			sockets("deny")
			continue
		case readable:
			rule("allow", "file-read* file-test-existence file-map-executable", at)
			rule("deny", "file-write*", at)
		case writable:
			rule("allow", "file-read* file-write* file-test-existence file-map-executable file-ioctl", at)
			sockets("allow")
		}
		for dir := filepath.Dir(m.path); !passed[dir]; dir = filepath.Dir(dir) {
			passed[dir] = true
		}
	}
	rule("allow", "file-read-metadata file-test-existence", named("literal", slices.Sorted(maps.Keys(passed))))
	switch p.network() {
	case open:
		rule("allow", "system-socket")
		rule("allow", `network-outbound (remote ip "*:*") (literal "/private/var/run/mDNSResponder")`)
		rule("allow", `network-bind network-inbound (local ip "*:*")`)
	case gated:
		rule("allow", "system-socket")
		rule("allow", `network-outbound (remote ip (string-append "localhost:" (param "`+wayOut+`")))`)
		for _, text := range p.hosts() {
			host, err := egress.ParseRule(text)
			if err != nil {
				return "", invalid("--sandbox-net: %v", err)
			}
			if port := host.Local(); port != 0 {
				rule("allow", `network-outbound (remote ip "localhost:`+strconv.Itoa(int(port))+`")`)
			}
		}
	}
	return b.String(), nil
}

// named is a filter for each of some names.
func named(filter string, names []string) string {
	var all []string
	for _, name := range names {
		all = append(all, "("+filter+" "+quoted(name)+")")
	}
	return strings.Join(all, " ")
}

// quoted is a text as the profile's language has it.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}
