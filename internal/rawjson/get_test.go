package rawjson

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGet(t *testing.T) {
	object := []byte(` {"a":1,"b":{"a":2},"a":"x\ty","":null,"\u0061b":true,"c\"d":false,"n":-9223372036854775808,"f":1.0,"s":"\ud83d"} `)
	type got struct {
		Raw    string
		OK     bool
		Str    string
		StrOK  bool
		Int    int64
		IntOK  bool
		Bool   bool
		BoolOK bool
	}
	want := map[string]got{
		"a":       {Raw: `"x\ty"`, OK: true, Str: "x\ty", StrOK: true},
		"b":       {Raw: `{"a":2}`, OK: true},
		"":        {Raw: `null`, OK: true},
		"ab":      {Raw: `true`, OK: true, Bool: true, BoolOK: true},
		`c"d`:     {Raw: `false`, OK: true, BoolOK: true},
		"n":       {Raw: `-9223372036854775808`, OK: true, Int: -9223372036854775808, IntOK: true},
		"f":       {Raw: `1.0`, OK: true},
		"s":       {Raw: `"\ud83d"`, OK: true, Str: "\xed\xa0\xbd", StrOK: true},
		"absent":  {},
		`c\"d`:    {},
		`\u0061b`: {},
	}
	all := map[string]got{}
	for key := range want {
		var g got
		var raw []byte
		raw, g.OK = Get(object, key)
		g.Raw = string(raw)
		g.Str, g.StrOK = GetString(object, key)
		g.Int, g.IntOK = GetInt(object, key)
		g.Bool, g.BoolOK = GetBool(object, key)
		all[key] = g
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{``, `[]`, `"a"`, `{"a":1`, `{"a":1}x`, `{"a":1,"b":01}`, `{"a":1,}`} {
		if v, ok := Get([]byte(text), "a"); ok || v != nil {
			t.Errorf("Get(%q) = %q, %v, want none", text, v, ok)
		}
	}
}

func TestKeyIs(t *testing.T) {
	long := strings.Repeat("k", 200)
	tests := []struct {
		raw, key string
		want     bool
	}{
		{`"a"`, "a", true},
		{`"a"`, "b", false},
		{`"a"`, "ab", false},
		{`"ab"`, "a", false},
		{`""`, "", true},
		{`"\u0061"`, "a", true},
		{`"\u0061"`, `\u0061`, false},
		{`"\\u0061"`, `\u0061`, true},
		{`"a\\b"`, `a\b`, true},
		{`"a\\b"`, `a\\b`, false},
		{`"\/"`, "/", true},
		{`"\ud83d\ude42"`, "🙂", true},
		{`"\ud83d"`, "\xed\xa0\xbd", true},
		{`"\ud83d"`, "\ufffd", false},
		{`"` + long + `\n"`, long + "\n", true},
		{`"` + long + `\n"`, long + "\t", false},
	}
	for _, tt := range tests {
		if got := KeyIs([]byte(tt.raw), tt.key); got != tt.want {
			t.Errorf("KeyIs(%s, %q) = %v", tt.raw, tt.key, got)
		}
	}
}

func TestParseInt(t *testing.T) {
	valid := map[string]int64{
		"0": 0, "-0": 0, "7": 7, "-12": -12, "9223372036854775807": 1<<63 - 1, "-9223372036854775808": -1 << 63,
	}
	for raw, want := range valid {
		if got, ok := ParseInt([]byte(raw)); !ok || got != want {
			t.Errorf("ParseInt(%q) = %d, %v, want %d", raw, got, ok, want)
		}
		if lit := string(AppendInt([]byte("x"), want)); raw != "-0" && lit != "x"+raw {
			t.Errorf("AppendInt(%d) = %s", want, lit)
		}
	}
	for _, raw := range []string{
		"", "-", "+1", "01", "-01", "1.0", "1e3", "1E0", " 1", "1 ", "1x", "0x1", "1_0", `"1"`, "null", "9223372036854775808", "-9223372036854775809",
	} {
		if got, ok := ParseInt([]byte(raw)); ok || got != 0 {
			t.Errorf("ParseInt(%q) = %d, %v, want none", raw, got, ok)
		}
	}
}
