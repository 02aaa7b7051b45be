package rawjson

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompact(t *testing.T) {
	tests := []struct{ src, want string }{
		{`{"b":1.0,"a":[1E+2,-0],"b":"\/\u00e9é\ud83d"}`, `{"b":1.0,"a":[1E+2,-0],"b":"\/\u00e9é\ud83d"}`},
		{" 1 ", "1"},
		{"\r\n\"a b\"\t", `"a b"`},
		{`[ ]`, `[]`},
		{`{ "a b" : [ 1 , 2 ] , "c\" " : " d " }`, `{"a b":[1,2],"c\" ":" d "}`},
		{"[\n\t{},\r\n\t{ }\n]", `[{},{}]`},
		{"{\"a\":\"\xff <>&\u2028\"}", "{\"a\":\"\xff <>&\u2028\"}"},
		{`{"a":1,"b" :2}`, `{"a":1,"b":2}`},
		{`{"a":1,"b": 2}`, `{"a":1,"b":2}`},
		{`{"a":1, "b":2}`, `{"a":1,"b":2}`},
		{`{"a":1 ,"b":2}`, `{"a":1,"b":2}`},
		{`{"a":1,"b":2 }`, `{"a":1,"b":2}`},
		{`{"a":[ 1]}`, `{"a":[1]}`},
		{`{"a":[1 ]}`, `{"a":[1]}`},
		{`{"a":{ "b":1}}`, `{"a":{"b":1}}`},
	}
	for _, tt := range tests {
		got, err := Compact([]byte("x"), []byte(tt.src))
		if err != nil || string(got) != "x"+tt.want {
			t.Errorf("Compact(%q) = %q, %v, want x%s", tt.src, got, err, tt.want)
		}
		src := []byte(tt.src)
		got, err = Compact(src[:0], src)
		if err != nil || string(got) != tt.want {
			t.Errorf("Compact(%q) in place = %q, %v, want %s", tt.src, got, err, tt.want)
		}
	}
	for _, tt := range syntax {
		if tt.msg == "" {
			continue
		}
		got, err := Compact([]byte("x"), []byte(tt.text))
		if diff := cmp.Diff(&SyntaxError{Offset: tt.offset, Msg: tt.msg}, err); diff != "" || string(got) != "x" {
			t.Errorf("Compact(%q) = %q: %s", tt.text, got, diff)
		}
	}
}
