package rule

import (
	"net/url"
	"strings"
)

// isURL reports whether a pattern is one of an address.
func isURL(pattern string) bool {
	return strings.Contains(pattern, "://") || strings.HasPrefix(pattern, domainPrefix)
}

const domainPrefix = "domain:"

// matchURL reports whether an address fits a pattern: domain:HOST, which is the host
// and those below it, or scheme://host/path, where * of the host stays in the host.
// strict is for allow rules: what could be read in two ways fits nothing.
func matchURL(pattern, text string, strict bool) bool {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Host == "" {
		return false
	}
	if strict && (u.User != nil || strings.ContainsAny(text, "\\\t\r\n ") || u.Scheme != "http" && u.Scheme != "https") {
		return false
	}
	host := strings.TrimSuffix(fold(u.Hostname()), ".")
	if domain, ok := strings.CutPrefix(pattern, domainPrefix); ok {
		domain = fold(strings.TrimPrefix(domain, "*."))
		return host == domain || strings.HasSuffix(host, "."+domain)
	}
	scheme, rest, ok := strings.Cut(pattern, "://")
	if !ok {
		return Glob(pattern, text) && !strict
	}
	want, path, _ := strings.Cut(rest, "/")
	got := host
	if strings.Contains(want, ":") && u.Port() != "" {
		got += ":" + u.Port()
	} else if strict && u.Port() != "" {
		return false
	}
	if !Glob(fold(scheme), fold(u.Scheme)) || !Glob(fold(want), got) {
		return false
	}
	if path == "" || path == "*" {
		return path == "*" || strings.Trim(u.Path, "/") == "" && u.RawQuery == ""
	}
	target := u.EscapedPath()
	if strict && (strings.Contains(u.Path, "/../") || strings.HasSuffix(u.Path, "/..") || strings.Contains(u.Path, "//")) {
		return false
	}
	if u.RawQuery != "" {
		target += "?" + u.RawQuery
	}
	return Glob("/"+path, target)
}

// deniesURL also takes what is no clear address for one that may be meant.
func (r *rule) deniesURL(text string) (Effect, string) {
	if matchURL(r.pattern, text, false) {
		return Denied, ""
	}
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Host == "" || u.User != nil || strings.ContainsAny(text, "\\\t\r\n") {
		return Unclear, "the address cannot be read for certain"
	}
	return Open, ""
}
