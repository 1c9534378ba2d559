package acpagent

import (
	"encoding/json"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

// What an agent asks becomes a form, and the filled form the answer that the agent expects.
func TestForm(t *testing.T) {
	t.Parallel()
	colours := pluginapi.Question{Question: "Which colour?", Header: "Colour", Options: []string{"red", "blue"}}
	several := pluginapi.Question{Question: "Which files?", Options: []string{"a", "b", "c"}, Multiple: true}
	free := pluginapi.Question{Question: "Why?"}
	for _, test := range []struct {
		name    string
		asked   pluginapi.InputRequired
		form    string
		content string
		answer  string
	}{
		{
			"one text", pluginapi.InputRequired{Question: "Name?", Context: "of the branch"},
			`{"sessionId":"s","mode":"form","message":"Name?\nof the branch","requestedSchema":{"type":"object","properties":{"answer_1":{"type":"string","title":"Name?"}},"required":["answer_1"]}}`,
			`{"answer_1":"x \"y\""}`, `x "y"`,
		},
		{
			"three at once", pluginapi.InputRequired{Question: "Tell me", Questions: []pluginapi.Question{colours, several, free}},
			`{"sessionId":"s","mode":"form","message":"Tell me","requestedSchema":{"type":"object","properties":{` +
				`"answer_1":{"type":"string","title":"Colour","description":"Which colour?","oneOf":[{"const":"red","title":"red"},{"const":"blue","title":"blue"}]},` +
				`"answer_2":{"type":"array","title":"Which files?","items":{"anyOf":[{"const":"a","title":"a"},{"const":"b","title":"b"},{"const":"c","title":"c"}]}},` +
				`"answer_3":{"type":"string","title":"Why?"}},"required":["answer_1","answer_2","answer_3"]}}`,
			`{"answer_1":"blue","answer_2":["a","c"],"answer_3":"so","more":1}`, `{"Which colour?":"blue","Which files?":"a, c","Why?":"so"}`,
		},
		{
			"no message of its own", pluginapi.InputRequired{Questions: []pluginapi.Question{free}},
			`{"sessionId":"s","mode":"form","message":"Why?","requestedSchema":{"type":"object","properties":{"answer_1":{"type":"string","title":"Why?"}},"required":["answer_1"]}}`,
			`{"answer_1":7}`, "",
		},
	} {
		data, err := json.Marshal(formOf("s", test.asked))
		if err != nil || string(data) != test.form {
			t.Errorf("%s: the form is %s, %v", test.name, data, err)
		}
		var content map[string]json.RawMessage
		if err := json.Unmarshal([]byte(test.content), &content); err != nil {
			t.Fatal(err)
		}
		if got := answerOf(test.asked, content); got != test.answer {
			t.Errorf("%s: the answer is %q", test.name, got)
		}
		if got := answerOf(test.asked, nil); got != "" {
			t.Errorf("%s: of nothing the answer is %q", test.name, got)
		}
	}
}
