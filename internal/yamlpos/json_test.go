package yamlpos_test

import (
	"testing"

	"github.com/drover-run/drover/internal/yamlpos"
)

func TestJSON(t *testing.T) {
	tests := []struct{ text, want string }{
		{"b: 1\na: [x, null, ~, true]\n", `{"b":1,"a":["x",null,null,true]}`},
		{"[1.0, 1e3, 123456789012345678901234567890, 0x1f, 1_000, .5, -0]", `[1.0,1e3,123456789012345678901234567890,31,1000,0.5,-0]`},
		{"- 2026-01-02\n- '1'\n- \"a\\tb\"\n- |-\n  two\n  lines\n", `["2026-01-02","1","a\tb","two\nlines"]`},
		{"{a: &x {b: 1}, c: *x, 1: d}", `{"a":{"b":1},"c":{"b":1},"1":"d"}`},
		{"yes", `"yes"`},
	}
	for _, tt := range tests {
		got, err := yamlpos.JSON(parse(t, tt.text), "schema")
		if err != nil || string(got) != tt.want {
			t.Errorf("%q:\n got %s, %v\nwant %s", tt.text, got, err, tt.want)
		}
	}
}

func TestJSONRefuses(t *testing.T) {
	tests := []struct{ text, want string }{
		{"a:\n  b: .inf\n", "2:6: schema: JSON has no word for the number .inf"},
		{"a: 1\na: 2\n", "2:1: schema: a is there twice"},
		{"[{[x]: 1}]", "1:3: schema: a name must be text, not a list"},
	}
	for _, tt := range tests {
		_, err := yamlpos.JSON(parse(t, tt.text), "schema")
		if err == nil || err.Error() != tt.want {
			t.Errorf("%q:\n got %v\nwant %s", tt.text, err, tt.want)
		}
	}
}
