package engine

import (
	"slices"
	"testing"
)

func TestSanitizeStrings(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{`{"message":"all is well","n":1}`, `{"message":"all is well","n":1}`},
		{`{"message":"\u001b[31mred\u001b[0m and \"quoted\"\n","hint":"\u001b]0;title\u0007x"}`, `{"message":"red and \"quoted\"\n","hint":"x"}`},
		{"{\"message\":\"a\u009b31mb\"}", `{"message":"ab"}`},
		{`{"message":"back\\u001b","n":"\u0008x\r\n"}`, `{"message":"back\\u001b","n":"x\n"}`},
		{`{"message":"is \u202eevil","hint":"also raw: ` + "\u202e" + `live"}`, `{"message":"is evil","hint":"also raw: live"}`},
		{`{"message":"wird größer 🚀 – été"}`, `{"message":"wird größer 🚀 – été"}`},
		{`{"message":"torn\u001b[`, `{"message":"torn\u001b[`},
	} {
		if got := string(sanitizeStrings([]byte(test.in))); got != test.want {
			t.Errorf("%s: got %s, want %s", test.in, got, test.want)
		}
	}
}

func TestFlagsOf(t *testing.T) {
	got := flagsOf([]string{"exec", "--model=a=b", "-p", "-", "--", "- a prompt", "text --not", "--long text"})
	if want := []string{"--model", "-p", "--"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
