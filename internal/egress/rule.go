// Package egress is the way out of a sandbox: an HTTP proxy that lets connections through
// to the hosts that somebody has named, and to no others.
package egress

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Rule names hosts that may be reached: "api.example.com", "*.example.com" (any name below
// it), "10.1.2.3", each with ":PORT" or without, which is 443.
type Rule struct {
	host string // lower case; without "*." and the port
	any  bool   // every name below host, and not host itself
	port uint16
}

// ParseRule reads a rule.
func ParseRule(text string) (Rule, error) {
	fail := func(why string) (Rule, error) {
		return Rule{}, fmt.Errorf("invalid host %q: %s; expected HOST, *.HOST or an address, with :PORT or without", text, why)
	}
	host, port := text, "443"
	if _, err := netip.ParseAddr(text); err != nil && (strings.HasPrefix(text, "[") || strings.Contains(text, ":")) {
		if host, port, err = net.SplitHostPort(text); err != nil {
			return fail("it has a colon")
		}
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return fail("its port is no number from 1 to 65535")
	}
	r := Rule{port: uint16(n)}
	host, r.any = strings.CutPrefix(host, "*.")
	if r.host = canonical(host); r.host == "" {
		return fail("it is no name")
	}
	if _, err := netip.ParseAddr(r.host); err == nil && r.any {
		return fail("an address has no names below it")
	}
	return r, nil
}

// Many reports whether the rule names more than one host.
func (r Rule) Many() bool { return r.any }

// Local is the port of this machine that the rule names, as localhost or a loopback
// address; 0 if it names another host.
func (r Rule) Local() uint16 {
	if addr, err := netip.ParseAddr(r.host); r.host == "localhost" && !r.any || err == nil && addr.IsLoopback() {
		return r.port
	}
	return 0
}

// canonical is a host as it is compared; empty if it is malformed.
func canonical(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return ""
		}
		return addr.Unmap().String()
	}
	if len(host) > 253 {
		return ""
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 {
			return ""
		}
		for _, c := range label {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return ""
			}
		}
	}
	return host
}

// matches reports whether the rule names a canonical host.
func (r Rule) matches(host string, port uint16) bool {
	if port != r.port {
		return false
	}
	if r.any {
		return strings.HasSuffix(host, "."+r.host)
	}
	return host == r.host
}

// leads reports whether a host that the rule names may be at an address. A name never leads
// to this machine or to what only this link has, whatever its owner says: that is where
// other programs of the user, and the cloud's metadata, are. A name below one that was
// written leads to public addresses alone.
func (r Rule) leads(to netip.Addr) bool {
	to = to.Unmap()
	if addr, err := netip.ParseAddr(r.host); err == nil {
		return to == addr
	}
	if r.host == "localhost" && !r.any {
		return to.IsLoopback()
	}
	if !to.IsGlobalUnicast() || to.IsLoopback() || to.IsLinkLocalUnicast() { // no multicast, none unspecified
		return false
	}
	return !r.any || !to.IsPrivate()
}
