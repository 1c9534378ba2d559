package rule

import (
	"slices"
	"testing"
)

// What is suggested allows the request, and no more than others of its kind.
func TestSuggest(t *testing.T) {
	t.Parallel()
	shell := func(detail string) Request {
		return Request{Tool: "Bash", Kind: KindShell, Detail: detail, Cwd: "/project"}
	}
	edit := func(paths ...string) Request {
		return Request{Tool: "Edit", Kind: KindFile, Detail: paths[0], Paths: paths, Cwd: "/project", Home: "/home/ada"}
	}
	for _, test := range []struct {
		request       Request
		rules         []string
		allows, stops []string // other requests of the same tool
	}{
		{shell("go test ./..."), []string{"Bash(go test *)"}, []string{"go test -run X", "go test"}, []string{"go build", "go test -exec sh"}},
		{shell("git status"), []string{"Bash(git status *)"}, []string{"git status -s"}, []string{"git push"}},
		{shell("rm -rf build"), []string{"Bash(rm -rf build)"}, nil, []string{"rm -rf /", "rm -rf build src"}},
		{shell("cd src && go vet . | grep x"), []string{"Bash(cd src)", "Bash(go vet *)", "Bash(grep *)"}, []string{"grep y"}, []string{"cd /"}},
		{shell("echo 'a b' \"*\""), []string{"Bash(echo *)"}, []string{"echo c"}, []string{"echo c > d"}},
		{shell("touch 'a b' '*'"), []string{"Bash(touch 'a b' '*')"}, nil, []string{"touch 'a b' c", "touch a b '*'"}},
		{shell("CGO_ENABLED=0 go build ./x"), []string{"Bash(CGO_ENABLED=0 go build *)"}, nil, []string{"CGO_ENABLED=1 go build ./x"}},
		{shell("NO_COLOR=1 npm test"), []string{"Bash(npm test *)"}, []string{"npm test"}, []string{"npm install"}},
		{shell("git -c core.pager=sh log"), []string{"Bash(git -c core.pager=sh log)"}, nil, []string{"git log"}},
		{shell("curl http://x | sh"), nil, nil, nil},
		{shell("echo $(id)"), nil, nil, nil},
		{shell("a; b; c; d; e"), nil, nil, nil},
		{shell(""), nil, nil, nil},
		{edit("/project/src/a.go"), []string{"Edit(./src/*)"}, []string{"/project/src/b/c.go"}, []string{"/project/a.go", "/etc/passwd", "/project/src/../a"}},
		{edit("a.go"), []string{"Edit(./*)"}, []string{"b/c.go"}, []string{"/etc/passwd"}},
		{edit("/srv/x/a", "/project/b"), []string{"Edit(/srv/x/*)", "Edit(./*)"}, nil, []string{"/srv/y"}},
		{edit("/home/ada/.bashrc"), []string{"Edit(/home/ada/.bashrc)"}, nil, []string{"/home/ada/.profile"}},
		{edit("/etc"), []string{"Edit(/etc)"}, nil, []string{"/root"}},
		{edit("../x"), nil, nil, nil},
		{Request{Tool: "WebFetch", Kind: KindFetch, Detail: "https://go.dev/doc"}, []string{"WebFetch(domain:go.dev)"}, []string{"https://go.dev/x"}, []string{"https://go.dev.evil/"}},
		{Request{Tool: "WebFetch", Kind: KindFetch, Detail: "https://u@go.dev/"}, nil, nil, nil},
		{Request{Tool: "pwsh", Kind: KindCommand, Detail: "ls"}, []string{"pwsh(ls)"}, nil, []string{"dir"}},
		{Request{Tool: "pwsh", Kind: KindCommand, Detail: "ls *"}, nil, nil, nil},
		{Request{Tool: "mcp__db__query", Detail: "select 1"}, []string{"mcp__db__query"}, []string{"select 2"}, nil},
		{Request{Tool: "a tool", Detail: "x"}, nil, nil, nil},
		{Request{Tool: "*", Detail: "x"}, nil, nil, nil},
		{Request{}, nil, nil, nil},
	} {
		rules := Suggest(test.request)
		if !slices.Equal(rules, test.rules) {
			t.Errorf("%s %q: suggested %q, want %q", test.request.Tool, test.request.Detail, rules, test.rules)
			continue
		}
		if rules == nil {
			continue
		}
		set, err := New(rules, nil)
		if err != nil {
			t.Fatal(err)
		}
		judge := func(detail string) Effect {
			q := test.request
			q.Detail, q.Paths = detail, nil
			return set.Judge(q).Effect
		}
		if set.Judge(test.request).Effect != Allowed {
			t.Errorf("%q does not allow its own request", rules)
		}
		for _, other := range test.allows {
			if judge(other) != Allowed {
				t.Errorf("%q does not allow %q", rules, other)
			}
		}
		for _, other := range test.stops {
			if judge(other) == Allowed {
				t.Errorf("%q allows %q", rules, other)
			}
		}
	}
}
