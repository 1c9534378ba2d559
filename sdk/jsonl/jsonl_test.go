package jsonl

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func parse(t *testing.T, text string) *Doc {
	t.Helper()
	doc, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestGetters(t *testing.T) {
	doc := parse(t, `{"s":"a\u00e9\n","i":12,"f":12.0,"e":1e3,"h":1.5,"big":1e300,"nan":nan,"t":true,"n":null,"a":[1,{"x":"y"}],"o":{"k":"v","l":[]}}`+"\r")
	defer doc.Release()
	if got := doc.Text("s"); got != "aé\n" {
		t.Errorf("s: %q", got)
	}
	for key, want := range map[string]int64{"i": 12, "f": 12, "e": 1000} {
		if got, ok := doc.Int(key); !ok || got != want {
			t.Errorf("%s: %d %v", key, got, ok)
		}
	}
	for _, key := range []string{"h", "big", "nan", "s", "n", "a", "none"} {
		if got, ok := doc.Int(key); ok || doc.IntPtr(key) != nil {
			t.Errorf("%s is the integer %d", key, got)
		}
	}
	if f, ok := doc.Float("h"); !ok || f != 1.5 || *doc.FloatPtr("h") != 1.5 {
		t.Error("h")
	}
	if _, ok := doc.Float("nan"); ok {
		t.Error("nan is a number")
	}
	if !doc.Bool("t") || doc.Bool("s") || doc.Bool("none") {
		t.Error("t")
	}
	if !doc.IsNull("n") || doc.IsNull("none") || !doc.Exists("n") || doc.Exists("none") {
		t.Error("n")
	}
	if doc.Text("a", "1", "x") != "y" || doc.Text("a", "7", "x") != "" || doc.Text("s", "x") != "" {
		t.Error("paths")
	}
	if doc.Len("a") != 2 || doc.Len("o") != 2 || doc.Len("s") != 0 {
		t.Error("lengths")
	}
	var keys []string
	for key := range doc.Fields("o") {
		keys = append(keys, key)
	}
	for range doc.Fields("o") {
		break
	}
	items := 0
	for i, item := range doc.Items("a") {
		items += i
		_ = item.Text("x")
	}
	if !reflect.DeepEqual(keys, []string{"k", "l"}) || items != 1 {
		t.Error(keys, items)
	}
	for range doc.Items("o") {
		t.Error("an object has no items")
	}
	if !doc.IsObject() || !doc.IsArray("a") || !doc.IsString("s") {
		t.Error("types")
	}
}

func TestNothing(t *testing.T) {
	var v Value
	if v.Exists() || v.Get("a", "b").Exists() || v.Text() != "" || v.Len() != 0 || v.Raw() != nil || v.IntPtr("x") != nil {
		t.Error("the zero Value is something")
	}
	for range v.Items() {
		t.Error("items")
	}
	for range v.Fields() {
		t.Error("fields")
	}
	if string(v.AppendRaw(nil)) != "null" {
		t.Error("raw")
	}
}

func TestCopiesStay(t *testing.T) {
	line := []byte(`{"a":"first","o":{"x":"first"}}`)
	doc := parse(t, string(line))
	text, raw := doc.Text("a"), doc.Raw("o")
	doc.Release()
	for range 100 {
		doc := parse(t, `{"a":"other","o":{"x":"other"}}`)
		doc.Release()
	}
	if text != "first" || string(raw) != `{"x":"first"}` {
		t.Error(text, string(raw))
	}
}

func TestRaw(t *testing.T) {
	for in, want := range map[string]string{
		`{"b":1, "a":[ true,false,null,"x"]}`: `{"b":1,"a":[true,false,null,"x"]}`,
		`"\u0001\u007f\u200b\ud83d\ude00/\/"`: "\"\\u0001\u007f\u200b\U0001f600//\"",
		`{"k\n\"":"v"}`:                       `{"k\n\"":"v"}`,
		`[1.50,-0,1E+5,1e-7]`:                 `[1.50,-0,1E+5,1e-7]`,
		`[nan,inf,-inf,01,1.,+1,--1,1e]`:      `["nan","inf","-inf","01","1.","+1","--1","1e"]`,
		"\"a\xffb\"":                          "\"a\ufffdb\"",
		"[\"raw\ttab\"]":                      `["raw\ttab"]`,
		`{"a":1,"a":2}`:                       `{"a":1,"a":2}`,
	} {
		doc, err := Parse([]byte(in))
		if err != nil {
			t.Logf("%s: %v", in, err)
			continue
		}
		if got := string(doc.Raw()); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
		if !json.Valid(doc.Raw()) {
			t.Errorf("%s: not JSON", in)
		}
		doc.Release()
	}
}

func TestParseObject(t *testing.T) {
	for _, line := range []string{"", " ", "[]", `"x"`, "null", "7", "plain text", "{", `{"a":1}{}`, "{} x", strings.Repeat(`{"a":`, 1000) + "1"} {
		if doc, err := ParseObject([]byte(line)); err == nil {
			t.Errorf("%q is an object", line)
			doc.Release()
		}
	}
	for _, line := range []string{"{}", " {} ", "{\"a\":1}\r"} {
		doc, err := ParseObject([]byte(line))
		if err != nil {
			t.Errorf("%q: %v", line, err)
			continue
		}
		doc.Release()
	}
}

func FuzzRaw(f *testing.F) {
	f.Add([]byte(`{"a":[1,"\ud800x",{"b":null}]}`))
	f.Add([]byte("[\"\xff\",-,1e,\"\\u12\"]"))
	f.Fuzz(func(t *testing.T, line []byte) {
		doc, err := Parse(line)
		if err != nil {
			if json.Valid(line) && strings.Count(string(line), "[")+strings.Count(string(line), "{") < 300 {
				t.Errorf("%q is JSON: %v", line, err)
			}
			return
		}
		defer doc.Release()
		raw := doc.Raw()
		if !json.Valid(raw) {
			t.Fatalf("%q became %q", line, raw)
		}
		var want, got any
		if json.Unmarshal(line, &want) != nil {
			return
		}
		json.Unmarshal(raw, &got)
		// encoding/json replaces lone surrogates, fastjson leaves their escapes.
		if !reflect.DeepEqual(want, got) && !strings.Contains(strings.ToLower(string(line)), `\ud`) {
			t.Errorf("%q became %q", line, raw)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	line := []byte(`{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello, this is a usual piece of text"}},"session_id":"6f1f3bd4-24c6-4f4d-9b12-3f6a58a80001","parent_tool_use_id":null,"uuid":"d1a2b3c4-24c6-4f4d-9b12-3f6a58a80001"}`)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		doc, err := ParseObject(line)
		if err != nil || string(doc.Bytes("type")) != "stream_event" || len(doc.Bytes("event", "delta", "text")) == 0 {
			b.Fatal(err)
		}
		doc.Release()
	}
}
