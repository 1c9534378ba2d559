package main

import (
	"testing"

	"github.com/amux-dev/amux/sdk/adaptertest"
)

// BenchmarkDelta is a line of what an agent says piece by piece.
func BenchmarkDelta(b *testing.B) {
	beginning := []string{
		`{"id":1,"result":{"userAgent":"amux/0.169.0 (x)"}}`,
		`{"id":2,"result":{"thread":{"id":"01a1ff1a-9fbf-74c0-8305-7ae6ba6457d3"},"model":"m"}}`,
		`{"method":"turn/started","params":{"threadId":"01a1ff1a-9fbf-74c0-8305-7ae6ba6457d3","turn":{"id":"t1"}}}`,
		`{"method":"item/started","params":{"threadId":"01a1ff1a-9fbf-74c0-8305-7ae6ba6457d3","item":{"type":"commandExecution","id":"call_01","command":"ls","cwd":"/w","processId":"1"}}}`,
	}
	const place = `"threadId":"01a1ff1a-9fbf-74c0-8305-7ae6ba6457d3","turnId":"01a1ff1a-aefe-78c1-99f3-61830fb5660f"`
	for name, line := range map[string]string{
		"text":   `{"method":"item/agentMessage/delta","params":{` + place + `,"itemId":"msg_01","delta":"Hello from the model, some words"}}`,
		"think":  `{"method":"item/reasoning/summaryTextDelta","params":{` + place + `,"itemId":"rs_01","summaryIndex":0,"delta":"Hello from the model, some words"}}`,
		"output": `{"method":"item/commandExecution/outputDelta","params":{` + place + `,"itemId":"call_01","delta":"Hello from the shell, some words\n"}}`,
	} {
		b.Run(name, func(b *testing.B) { adaptertest.Bench(b, adapter{}, beginning, line) })
	}
}
