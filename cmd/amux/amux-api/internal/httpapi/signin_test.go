package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestLinks(t *testing.T) {
	now := time.Now()
	u := newUsers(strings.Repeat("t", 43), "8080")
	u.now = func() time.Time { return now }
	code, until := u.link()
	if !u.use(code) || u.use(code) || u.use("") {
		t.Error("a code is good for something else than one time")
	}
	old, _ := u.link()
	now = until.Add(time.Second)
	if u.use(old) {
		t.Error("an old code is good")
	}
	first, _ := u.link()
	now = now.Add(time.Second)
	for range maxLinks {
		u.link()
	}
	if u.use(first) || len(u.links) != maxLinks {
		t.Errorf("%d codes are kept", len(u.links))
	}
}

// A browser has both halves of one sign-in, with the same token, before its time is over.
func TestBrowser(t *testing.T) {
	now := time.Now()
	at := func(token string) *users {
		u := newUsers(token, "8080")
		u.now = func() time.Time { return now }
		return u
	}
	u := at(strings.Repeat("t", 43))
	cookie, key := u.admit()
	other, otherKey := u.admit()
	ask := func(u *users, cookie http.Cookie, header, value string) bool {
		r, err := http.NewRequest("GET", "http://127.0.0.1:8080/v1/runs", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.AddCookie(&cookie)
		r.Header.Set(header, value)
		return u.browser(r)
	}
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode {
		t.Errorf("the cookie is %v", &cookie)
	}
	later := at(strings.Repeat("t", 43)) // the server was started again
	if !ask(later, cookie, keyHeader, key) || !ask(u, cookie, "Sec-WebSocket-Protocol", screenProtocol+", "+keyProtocol+key) || !ask(u, other, keyHeader, otherKey) {
		t.Error("a browser that was signed in is refused")
	}
	value := strings.Split(cookie.Value, ".")
	forged := func(value string) http.Cookie { return http.Cookie{Name: cookie.Name, Value: value} }
	for name, known := range map[string]bool{
		"no key":          ask(u, cookie, keyHeader, ""),
		"another's key":   ask(u, cookie, keyHeader, otherKey),
		"another token":   ask(at(strings.Repeat("u", 43)), cookie, keyHeader, key),
		"another name":    ask(u, http.Cookie{Name: "amux-80", Value: cookie.Value}, keyHeader, key),
		"a later end":     ask(u, forged(value[0]+".99999999999."+value[2]), keyHeader, key),
		"the key as both": ask(u, forged(value[0]+"."+value[1]+"."+key), keyHeader, key),
		"nothing in it":   ask(u, forged(""), keyHeader, key),
		"no signature":    ask(u, forged(value[0]+"."+value[1]), keyHeader, key),
	} {
		if known {
			t.Errorf("%s: known", name)
		}
	}
	now = now.Add(browserTime)
	if ask(u, cookie, keyHeader, key) {
		t.Error("it is known after its time")
	}
}
