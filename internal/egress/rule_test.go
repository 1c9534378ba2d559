package egress

import (
	"net/netip"
	"testing"
)

func TestParseRule(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Rule{
		"api.example.com":        {"api.example.com", false, 443},
		"API.Example.COM.":       {"api.example.com", false, 443},
		"*.example.com:8443":     {"example.com", true, 8443},
		"10.1.2.3":               {"10.1.2.3", false, 443},
		"2001:db8::1":            {"2001:db8::1", false, 443},
		"[2001:DB8::1]:80":       {"2001:db8::1", false, 80},
		"[::ffff:127.0.0.1]:80":  {"127.0.0.1", false, 80},
		"localhost:11434":        {"localhost", false, 11434},
		"xn--bcher-kva.example":  {"xn--bcher-kva.example", false, 443},
		"_dmarc.example.com:443": {"_dmarc.example.com", false, 443},
	} {
		if got, err := ParseRule(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ":443", "a b", "a..b", "*", "*.", "*.*.com", "a.*.com", "*.10.0.0.1", "host:0", "host:65536", "host:-1", "host:x", "host:1:2", "https://host", "host/path", "ho\x00st", "[::1", "fe80::1%eth0", "münchen.de"} {
		if got, err := ParseRule(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

// What a rule names, and where what it names may lead.
func TestMatches(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, host string
		port       uint16
		want       bool
	}{
		{"example.com", "example.com", 443, true}, {"example.com", "example.com", 80, false}, {"example.com", "a.example.com", 443, false},
		{"*.example.com", "a.example.com", 443, true}, {"*.example.com", "a.b.example.com", 443, true}, {"*.example.com", "example.com", 443, false},
		{"*.example.com", "badexample.com", 443, false}, {"example.com", "example.com.evil.net", 443, false},
	} {
		rule, err := ParseRule(test.rule)
		if err != nil {
			t.Fatal(err)
		}
		if got := rule.matches(canonical(test.host), test.port); got != test.want {
			t.Errorf("%s names %s:%d: %v", test.rule, test.host, test.port, got)
		}
	}
	for _, test := range []struct {
		rule, to string
		want     bool
	}{
		{"example.com", "93.184.216.34", true}, {"example.com", "2001:db8::1", true}, {"example.com", "10.0.0.7", true},
		{"*.example.com", "93.184.216.34", true}, {"*.example.com", "10.0.0.7", false}, {"*.example.com", "fd00::1", false},
		{"example.com", "127.0.0.1", false}, {"example.com", "::1", false}, {"example.com", "::ffff:127.0.0.1", false}, {"example.com", "169.254.169.254", false},
		{"example.com", "fe80::1", false}, {"example.com", "0.0.0.0", false}, {"example.com", "::", false}, {"example.com", "224.0.0.1", false}, {"example.com", "255.255.255.255", false},
		{"169.254.169.254:80", "169.254.169.254", true}, {"10.0.0.7", "10.0.0.8", false},
		{"localhost:80", "127.0.0.1", true}, {"localhost:80", "::1", true}, {"localhost:80", "10.0.0.7", false}, {"*.localhost:80", "127.0.0.1", false},
	} {
		rule, err := ParseRule(test.rule)
		if err != nil {
			t.Fatal(err)
		}
		if got := rule.leads(netip.MustParseAddr(test.to)); got != test.want {
			t.Errorf("%s may be at %s: %v", test.rule, test.to, got)
		}
	}
	for text, want := range map[string]uint16{"localhost:80": 80, "127.0.0.1:81": 81, "[::1]:82": 82, "127.9.9.9": 443, "*.localhost:83": 0, "example.com": 0, "10.0.0.1:80": 0} {
		rule, err := ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := rule.Local(); got != want {
			t.Errorf("%s is port %d of this machine", text, got)
		}
	}
}

// A rule that is read names what it says, and nothing with a port of its own in the name.
func FuzzParseRule(f *testing.F) {
	for _, seed := range []string{"a.b", "*.a.b:1", "[::1]:80", "localhost:65535", "a:b:c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rule, err := ParseRule(text)
		if err != nil {
			return
		}
		if rule.port == 0 || rule.host == "" || canonical(rule.host) != rule.host {
			t.Errorf("%q is %+v", text, rule)
		}
		if !rule.any && !rule.matches(rule.host, rule.port) {
			t.Errorf("%q does not name itself", text)
		}
	})
}
