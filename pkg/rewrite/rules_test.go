package rewrite

import (
	"errors"
	"strings"
	"testing"

	"github.com/drover-run/drover/internal/redact"
)

func rulesOf(t testing.TB, text string) *Rules {
	t.Helper()
	rules, err := ParseRules(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func TestRulesReplace(t *testing.T) {
	for _, tt := range []struct{ rules, text, want string }{
		{"secret ==> [gone]", "a secret, the secret", "a [gone], the [gone]"},
		{"# secret ==> x\n\nsecret ==> ", "a secret.", "a ."},
		{" a ==>  b", "x a y", "x b y"},
		{"regex:k-[0-9]+ ==> $1", "k-12 k-x", "$1 k-x"},
		{"ab ==> ", "aabb", ""},
		{"a ==> b ==> c", "a", "b ==> c"},
		{`"q" ==> "r"`, `{\"q\":1}`, `{\"r\":1}`},
		{"none ==> x", "text", "text"},
	} {
		got, _, err := rulesOf(t, tt.rules).apply([]byte(tt.text))
		if err != nil || string(got) != tt.want {
			t.Errorf("%q on %q: %q, %v; want %q", tt.rules, tt.text, got, err, tt.want)
		}
	}
}

// A line that is no rule is refused with its number, and never shown.
func TestBadRules(t *testing.T) {
	for _, tt := range []struct {
		text string
		line int
	}{
		{"secret", 1}, {"# note\nsecret=>x", 2}, {" ==> x", 1}, {"ok ==> x\n\nregex:( ==> x", 3},
		{"regex:x* ==> y", 1}, {"regex: ==> y", 1}, {"secret ==> a secret", 1}, {"b ==> x\na ==> b", 2},
		{"regex:[a-z]+ ==> gone", 1}, {"\xff ==> x", 1},
	} {
		_, err := ParseRules(strings.NewReader(tt.text))
		bad, ok := errors.AsType[*redact.FileError](err)
		if !ok || bad.Line != tt.line {
			t.Errorf("%q: %v, want line %d", tt.text, err, tt.line)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error shows the text: %v", tt.text, err)
		}
	}
}

// Rules that make up new matches for ever are given up, and nothing is changed.
func TestEndlessRules(t *testing.T) {
	rules := rulesOf(t, "ab ==> bba\nc ==> a")
	text := strings.Repeat("a", 200) + "b"
	if _, _, err := rules.apply([]byte(text)); !errors.Is(err, ErrEndless) {
		t.Errorf("got %v", err)
	}
}
