//go:build linux || darwin

package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/internal/egress"
)

// newGate is the way out to the hosts that may be reached.
func newGate(allow []string) (*egress.Gate, error) {
	gate := &egress.Gate{Refused: func(host string) {
		say("refused a connection to %s", host)
	}}
	for _, text := range allow {
		rule, err := egress.ParseRule(text)
		if err != nil {
			return nil, err
		}
		gate.Rules = append(gate.Rules, rule)
		if port := rule.Local(); port != 0 { // within asks for it by this name
			rule, err := egress.ParseRule("localhost:" + strconv.Itoa(int(port)))
			if err != nil {
				return nil, err
			}
			gate.Rules = append(gate.Rules, rule)
		}
	}
	return gate, nil
}

// led is the environment with variables that lead programs to a proxy.
func led(env []string, proxy string) []string {
	const own = "localhost,127.0.0.1,::1"
	url := "http://" + proxy
	set := map[string]string{"NODE_USE_ENV_PROXY": "1"}
	for name, value := range map[string]string{"http_proxy": url, "https_proxy": url, "all_proxy": url, "no_proxy": own} {
		set[name], set[strings.ToUpper(name)] = value, value
	}
	env = slices.DeleteFunc(slices.Clone(env), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		_, ours := set[name]
		return ours
	})
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	return env
}
