package pattern

import (
	"reflect"
	"regexp"
	"testing"
)

func TestPatternIsTheRegularExpression(t *testing.T) {
	const expression = `(\w+)@(\w+)`
	p, same := New(expression), regexp.MustCompile(expression)
	for _, s := range []string{"", "to ann@home and bob@work", "nobody"} {
		for what, got := range map[string][2]any{
			"MatchString":             {p.MatchString(s), same.MatchString(s)},
			"Match":                   {p.Match([]byte(s)), same.Match([]byte(s))},
			"Find":                    {p.Find([]byte(s)), same.Find([]byte(s))},
			"FindString":              {p.FindString(s), same.FindString(s)},
			"FindStringSubmatch":      {p.FindStringSubmatch(s), same.FindStringSubmatch(s)},
			"FindStringSubmatchIndex": {p.FindStringSubmatchIndex(s), same.FindStringSubmatchIndex(s)},
			"FindSubmatch":            {p.FindSubmatch([]byte(s)), same.FindSubmatch([]byte(s))},
			"FindAllStringSubmatch":   {p.FindAllStringSubmatch(s, -1), same.FindAllStringSubmatch(s, -1)},
			"String":                  {p.String(), same.String()},
			"ReplaceAllString":        {p.ReplaceAllString(s, "$2"), same.ReplaceAllString(s, "$2")},
		} {
			if !reflect.DeepEqual(got[0], got[1]) {
				t.Errorf("%s of %q: %v, want %v", what, s, got[0], got[1])
			}
		}
	}
}

func TestAWrongPatternFailsInATestAtOnce(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a wrong expression passed")
		}
	}()
	New(`(`)
}
