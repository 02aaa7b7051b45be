package rawjson

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSet(t *testing.T) {
	tests := []struct{ obj, key, value, want string }{
		{`{}`, "a", `1`, `{"a":1}`},
		{` { } `, "a", `1`, ` {"a":1 } `},
		{`{"a":1}`, "b", `[ ]`, `{"a":1,"b":[ ]}`},
		{"{\n\"a\" : 1\n}\n", "b", `2`, "{\n\"a\" : 1,\"b\":2\n}\n"},
		{"{\n\"a\" : 1\n}\n", "a", `{"x":2}`, "{\n\"a\" : {\"x\":2}\n}\n"},
		{`{"a":1,"b":1.0,"a":2,"c":"\u00e9"}`, "a", `null`, `{"a":1,"b":1.0,"a":null,"c":"\u00e9"}`},
		{`{"\u0061":1}`, "a", `2`, `{"\u0061":2}`},
		{`{"x":{"a":1}}`, "a", `2`, `{"x":{"a":1},"a":2}`},
		{`{}`, "a\"<\n" + high, `2`, `{"a\"<\n\ud83d":2}`},
		{`{"a":1}`, "", `2`, `{"a":1,"":2}`},
	}
	for _, tt := range tests {
		obj := []byte(tt.obj)
		got, err := Set(obj, tt.key, []byte(tt.value))
		if err != nil || string(got) != tt.want {
			t.Errorf("Set(%q, %q, %s) = %q, %v, want %q", tt.obj, tt.key, tt.value, got, err, tt.want)
		}
		if string(obj) != tt.obj {
			t.Errorf("Set(%q) changed its argument to %q", tt.obj, obj)
		}
	}
	bad := []struct {
		obj, value string
		err        error
	}{
		{`[]`, `1`, &SyntaxError{0, msgObject}},
		{`{"a":1`, `1`, &SyntaxError{6, msgEnd}},
		{`{"a":1}{}`, `1`, &SyntaxError{7, msgTrailing}},
		{`{}`, ``, &SyntaxError{0, msgEnd}},
		{`{}`, `1,2`, &SyntaxError{1, msgTrailing}},
	}
	for _, tt := range bad {
		got, err := Set([]byte(tt.obj), "a", []byte(tt.value))
		if diff := cmp.Diff(tt.err, err); diff != "" || got != nil {
			t.Errorf("Set(%q, %q) = %q: %s", tt.obj, tt.value, got, diff)
		}
	}
}

func TestDelete(t *testing.T) {
	tests := []struct{ obj, key, want string }{
		{`{}`, "a", `{}`},
		{"{ }\n", "a", "{ }\n"},
		{`{"b":1.0}`, "a", `{"b":1.0}`},
		{`{"a":1}`, "a", `{}`},
		{` { "a" : 1 } `, "a", ` {  } `},
		{`{"a":1,"b":2}`, "a", `{"b":2}`},
		{`{"a":1,"b":2}`, "b", `{"a":1}`},
		{`{"a":1, "b":2,  "c":3}`, "b", `{"a":1,  "c":3}`},
		{`{"a":1,"b":2,"\u0061":3,"c":4,"a":5}`, "a", `{"b":2,"c":4}`},
		{`{"a":1,"a":2}`, "a", `{}`},
		{`{"x":{"a":1},"a":[1,2]}`, "a", `{"x":{"a":1}}`},
		{"{\n \"a\": 1,\n \"b\": 2,\n \"c\": 3\n}", "a", "{\n \"b\": 2,\n \"c\": 3\n}"},
		{"{\n \"a\": 1,\n \"b\": 2,\n \"c\": 3\n}", "c", "{\n \"a\": 1,\n \"b\": 2\n}"},
	}
	for _, tt := range tests {
		obj := []byte(tt.obj)
		got, err := Delete(obj, tt.key)
		if err != nil || string(got) != tt.want {
			t.Errorf("Delete(%q, %q) = %q, %v, want %q", tt.obj, tt.key, got, err, tt.want)
		}
		if string(obj) != tt.obj || len(got) > 0 && &got[0] == &obj[0] {
			t.Errorf("Delete(%q) shares its argument, now %q", tt.obj, obj)
		}
	}
	for text, want := range map[string]*SyntaxError{`1`: {0, msgObject}, `{"a":1`: {6, msgEnd}, `{"a":1}1`: {7, msgTrailing}} {
		got, err := Delete([]byte(text), "a")
		if diff := cmp.Diff(error(want), err); diff != "" || got != nil {
			t.Errorf("Delete(%q) = %q: %s", text, got, diff)
		}
	}
}

func TestComplete(t *testing.T) {
	tests := []struct{ prefix, want string }{
		{``, `{}`},
		{" \n", `{}`},
		{`{`, `{}`},
		{`[`, `[]`},
		{` {"a`, `{}`},
		{`{"a"`, `{}`},
		{`{"a" :`, `{}`},
		{`{"a": `, `{}`},
		{`{"a": "`, `{"a": ""}`},
		{`{"a":"x`, `{"a":"x"}`},
		{`{"a":"x"`, `{"a":"x"}`},
		{`{"a":"x",`, `{"a":"x"}`},
		{`{"a":"x" , "b`, `{"a":"x"}`},
		{`{"a":"x","b":`, `{"a":"x"}`},
		{`{"a":"x","b":{`, `{"a":"x","b":{}}`},
		{`{"a":"x","b":{"c":[1,{"d":[`, `{"a":"x","b":{"c":[1,{"d":[]}]}}`},
		{`{"a":{"b":1},"c":[2]`, `{"a":{"b":1},"c":[2]}`},
		{`{"a":[1,2],`, `{"a":[1,2]}`},
		{`{"a":1}`, `{"a":1}`},
		{` {"a" : 1 } `, `{"a" : 1 }`},
		{`{"a":1,"a":2`, `{"a":1,"a":2}`},

		{`tru`, `{}`},
		{`true`, `true`},
		{`[true,fal`, `[true]`},
		{`{"a":n`, `{}`},
		{`{"a":null`, `{"a":null}`},
		{`1`, `1`},
		{`-`, `{}`},
		{`[-`, `[]`},
		{`[-1`, `[-1]`},
		{`[1.`, `[1]`},
		{`[1.5`, `[1.5]`},
		{`[1.5e`, `[1.5]`},
		{`[1.5E-`, `[1.5]`},
		{`[1.5E-7`, `[1.5E-7]`},
		{`{"a":0.`, `{"a":0}`},

		{`"a\`, `"a"`},
		{`"a\u`, `"a"`},
		{`"a\u00e`, `"a"`},
		{`"a\u00e9`, `"a\u00e9"`},
		{`"a\\`, `"a\\"`},
		{`"a\"`, `"a\""`},
		{`"\ud83d`, `"\ud83d"`},
		{`"\ud83d\ude`, `"\ud83d"`},
		{`"`, `""`},
		{"\"é\xe4\xbd", `"é"`},
		{"\"é\xf0", `"é"`},
		{"{\"a\":\"x" + high, `{"a":"x\ud83d"}`},
		{"{\"a\":\"x" + high + low, `{"a":"x🙂"}`},
		{"[\"\xff\",\"" + low + "\"", `["\ufffd","\ude42"]`},
		{"{\"" + high + "\":1", `{"\ud83d":1}`},

		{`{"a":1}}`, `{"a":1}`},
		{`{"a":1} {"b":2}`, `{"a":1}`},
		{`1 2`, `1`},
		{`{"a":1]`, `{"a":1}`},
		{`{"a":1,,"b":2}`, `{"a":1}`},
		{`{"a":1,}`, `{"a":1}`},
		{`{"a":1 "b":2}`, `{"a":1}`},
		{`{"a":1,b:2}`, `{"a":1}`},
		{`{"a" 1}`, `{}`},
		{`{,`, `{}`},
		{`[,1]`, `[]`},
		{`[1,]`, `[1]`},
		{`[1 2]`, `[1]`},
		{`[01]`, `[0]`},
		{`[1x]`, `[1]`},
		{`[nulx]`, `[]`},
		{`["a\qb"]`, `["a"]`},
		{"[\"a\nb\"]", `["a"]`},
		{`["a\u12g4"]`, `["a"]`},
		{`}`, `{}`},
		{`x`, `{}`},
		{"```json\n{", `{}`},
	}
	for _, tt := range tests {
		if got := string(Complete([]byte(tt.prefix))); got != tt.want {
			t.Errorf("Complete(%q) = %s, want %s", tt.prefix, got, tt.want)
		}
	}
}
