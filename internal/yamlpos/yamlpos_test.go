package yamlpos

import (
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestLocate(t *testing.T) {
	cases := []struct{ text, want string }{
		{"a: b\n  c: d\n", "2:4: mapping values are not allowed in this context"},
		{"a: {b\nc: d\n", "1:5: did not find expected ',' or '}'"},
		{"a: b\n\tc: d\n", "2:1: found a tab character that violates indentation"},
		{"é: [1, 2\n", "1:8: did not find expected ',' or ']'"},
		{"a: *b\n", "1:5: unknown anchor 'b' referenced"},
		{strings.Repeat("# a comment\n", 5000) + "a: b: c\n", "5001:5: mapping values are not allowed in this context"},
	}
	for _, c := range cases {
		var n yaml.Node
		err := yaml.Unmarshal([]byte(c.text), &n)
		if err == nil {
			t.Errorf("%.20q is sound", c.text)
			continue
		}
		line, column := Locate([]byte(c.text), err)
		if got := fmt.Sprintf("%d:%d: %s", line, column, Message(err)); got != c.want {
			t.Errorf("%.20q: %s, want %s", c.text, got, c.want)
		}
	}
}
