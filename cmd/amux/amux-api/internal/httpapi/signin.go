package httpapi

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amux-dev/amux/pluginapi"
)

const (
	signInPath = "/v1/sign-in"
	// maxSignIn bounds what somebody may send who is not signed in, in bytes.
	maxSignIn = 4 << 10
	// linkTime is how long a link signs a browser in that nobody has opened yet.
	linkTime = 10 * time.Minute
	maxLinks = 16
	// browserTime is how long a browser stays signed in.
	browserTime = 7 * 24 * time.Hour
	// keyHeader has the key of a browser. What else listens on this machine gets the cookie
	// too, because cookies know no ports; it has not the key, which the page keeps for its
	// own origin.
	keyHeader = "Amux-Key"
	// keyProtocol begins the offer of a WebSocket that has the key: a page can send it no
	// header of its own.
	keyProtocol    = "amux.key."
	screenProtocol = "amux.screen"
)

// users knows the token, and the browsers that were signed in with it or by a link. What a
// browser gets is made of the token, so it outlives this server, and ends with the token.
type users struct {
	token  []byte
	cookie string // its name
	now    func() time.Time

	mu    sync.Mutex
	links map[[sha256.Size]byte]time.Time // hashes of the codes that are not used yet, and until when they may be
}

func newUsers(token, port string) *users {
	return &users{token: []byte(token), cookie: "amux-" + port, now: time.Now, links: map[[sha256.Size]byte]time.Time{}}
}

func (u *users) isToken(given string) bool {
	have, want := sha256.Sum256([]byte(given)), sha256.Sum256(u.token)
	return subtle.ConstantTimeCompare(have[:], want[:]) == 1
}

// link makes a code that signs one browser in. The oldest of too many is forgotten.
func (u *users) link() (code string, until time.Time) {
	code = rand.Text()
	u.mu.Lock()
	defer u.mu.Unlock()
	var oldest [sha256.Size]byte
	for sum, end := range u.links {
		if u.now().After(end) {
			delete(u.links, sum)
		} else if first, ok := u.links[oldest]; !ok || end.Before(first) {
			oldest = sum
		}
	}
	if len(u.links) >= maxLinks {
		delete(u.links, oldest)
	}
	until = u.now().Add(linkTime)
	u.links[sha256.Sum256([]byte(code))] = until
	return code, until
}

// use reports whether a code signs in. It does so once.
func (u *users) use(code string) bool {
	sum := sha256.Sum256([]byte(code))
	u.mu.Lock()
	defer u.mu.Unlock()
	until, ok := u.links[sum]
	delete(u.links, sum)
	return ok && u.now().Before(until)
}

// sign returns what only who has the token can make of a text.
func (u *users) sign(what, text string) string {
	mac := hmac.New(sha256.New, u.token)
	mac.Write([]byte(what + "\x00" + text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// admit makes the two halves that a browser shows: a cookie and a key.
func (u *users) admit() (cookie http.Cookie, key string) {
	until := u.now().Add(browserTime)
	name := rand.Text() + "." + strconv.FormatInt(until.Unix(), 10)
	return http.Cookie{
		Name: u.cookie, Value: name + "." + u.sign("cookie", name), Path: "/", Expires: until,
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}, u.sign("key", name)
}

// browser reports whether a request comes from the page in a browser that was signed in.
func (u *users) browser(r *http.Request) bool {
	cookie, err := r.Cookie(u.cookie)
	if err != nil {
		return false
	}
	id, rest, _ := strings.Cut(cookie.Value, ".")
	end, signed, _ := strings.Cut(rest, ".")
	name := id + "." + end
	until, err := strconv.ParseInt(end, 10, 64)
	if err != nil || !equal(signed, u.sign("cookie", name)) || u.now().Unix() >= until {
		return false
	}
	key := r.Header.Get(keyHeader)
	for offer := range strings.SplitSeq(r.Header.Get("Sec-WebSocket-Protocol"), ",") {
		if given, ok := strings.CutPrefix(strings.TrimSpace(offer), keyProtocol); ok {
			key = given
		}
	}
	return equal(key, u.sign("key", name))
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

type signInIn struct {
	Body struct {
		Code  string `json:"code,omitempty" doc:"what a link has behind #sign-in=" maxLength:"200"`
		Token string `json:"token,omitempty" doc:"or the token" maxLength:"200"`
	}
}

type signInAnswer struct {
	SetCookie http.Cookie `header:"Set-Cookie"`
	Body      struct {
		Key     string    `json:"key" doc:"each request has it as Amux-Key beside the cookie; a WebSocket offers the protocol amux.key.KEY"`
		Expires time.Time `json:"expires"`
	}
}

type signOutAnswer struct {
	SetCookie http.Cookie `header:"Set-Cookie"`
}

type linkAnswer struct {
	Body struct {
		Path    string    `json:"path" doc:"behind the address of this server; it works once"`
		Expires time.Time `json:"expires"`
	}
}

// linkPath is where a browser is signed in by a code. The code is behind #, so a browser
// sends it nowhere, and what opens links to look at them does not use it up.
func linkPath(code string) string { return "/#sign-in=" + code }

func (s *api) addSignIn(to huma.API) {
	add(to, "signIn", http.MethodPost, signInPath, "Sign a browser in. Needs neither token nor cookie", acts, func(_ context.Context, in *signInIn) (*signInAnswer, error) {
		u, err := s.browsers()
		if err != nil {
			return nil, err
		}
		b := in.Body
		if !(b.Code != "" && u.use(b.Code)) && !(b.Token != "" && u.isToken(b.Token)) {
			p := problemOf(pluginapi.Errorf(pluginapi.CodeAuth, "the link is not valid: it was used, or is older than %d minutes", int(linkTime.Minutes())).
				WithHint("start amux serve --http again for another one, or use the token: it is in %s in the configuration folder", TokenFile))
			if b.Token != "" {
				p.Message = "the token is wrong"
			}
			p.status = http.StatusUnauthorized
			return nil, p
		}
		out := &signInAnswer{}
		out.SetCookie, out.Body.Key = u.admit()
		out.Body.Expires = out.SetCookie.Expires.UTC()
		return out, nil
	})
	to.OpenAPI().Paths[signInPath].Post.Security = []map[string][]string{{}}
	add(to, "signOut", http.MethodDelete, signInPath, "Sign this browser out", acts, func(context.Context, *struct{}) (*signOutAnswer, error) {
		u, err := s.browsers()
		if err != nil {
			return nil, err
		}
		return &signOutAnswer{http.Cookie{Name: u.cookie, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode}}, nil
	})
	add(to, "createLink", http.MethodPost, "/v1/links", "Make a link that signs one browser in, once", acts, func(context.Context, *struct{}) (*linkAnswer, error) {
		u, err := s.browsers()
		if err != nil {
			return nil, err
		}
		code, until := u.link()
		out := &linkAnswer{}
		out.Body.Path, out.Body.Expires = linkPath(code), until.UTC()
		return out, nil
	})
}

func (s *api) browsers() (*users, error) {
	if s.users == nil {
		return nil, pluginapi.Errorf(pluginapi.CodeCapability, "a browser cannot open a socket, and nobody signs in to it").WithHint("amux serve --http=127.0.0.1:8080")
	}
	return s.users, nil
}
