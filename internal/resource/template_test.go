package resource

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExpand(t *testing.T) {
	args := []string{"one", "two words", "$1", "four"}
	cases := []struct{ body, want string }{
		{"nothing", "nothing"},
		{"$1-$2-$9", "one-two words-"},
		{"$@", "one two words $1 four"},
		{"$ARGUMENTS!", "one two words $1 four!"},
		{"$ARGUMENTSX", "$ARGUMENTSX"},
		{"$3", "$1"},
		{"$0 $$ $x", "$0 $$ $x"},
		{"$12", "one2"},
		{"${@:3}", "$1 four"},
		{"${@:2:2}", "two words $1"},
		{"${@:0:1}", "one"},
		{"${@:9}|${@:2:0}|${@:3:99999999999999999999}", "||$1 four"},
		{"${@:99999999999999999999}", ""},
		{"${@:x}", "${@:x}"},
	}
	for _, c := range cases {
		if got := (Template{Body: c.body}).Expand(args); got != c.want {
			t.Errorf("expand %q = %q, want %q", c.body, got, c.want)
		}
	}
	if got := (Template{Body: "a $1 $@ ${@:1} b"}).Expand(nil); got != "a    b" {
		t.Errorf("without arguments: %q", got)
	}
}

func TestSplitArgs(t *testing.T) {
	cases := []struct {
		text string
		want []string
		err  bool
	}{
		{"", nil, false},
		{"  \t\n ", nil, false},
		{"a  b\tc\nd", []string{"a", "b", "c", "d"}, false},
		{`'a b' "c d"`, []string{"a b", "c d"}, false},
		{`a'b c'd`, []string{"ab cd"}, false},
		{`"" ''`, []string{"", ""}, false},
		{`a\ b \"c\"`, []string{"a b", `"c"`}, false},
		{`"a \"b\" \\ \n"`, []string{`a "b" \ \n`}, false},
		{`'a \'`, []string{`a \`}, false},
		{`é "ü 日"`, []string{"é", "ü 日"}, false},
		{`"open`, nil, true},
		{`it's`, nil, true},
		{`end\`, nil, true},
	}
	for _, c := range cases {
		got, err := SplitArgs(c.text)
		if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != c.err {
			t.Errorf("split %q: %v\n%s", c.text, err, diff)
		}
	}
}
