package cli

import "testing"

func TestMeant(t *testing.T) {
	names := []string{"configuration", "config", "fork", "log", "exit-codes", "scripts", "model", "status"}
	for word, want := range map[string]string{
		"conf": "config", "confg": "config", "configura": "configuration", "codes": "exit-codes",
		"modle": "model", "stauts": "status", "script": "scripts", "lgo": "log", "fork": "fork",
		"nosuch": "", "x": "", "": "", "mo": "",
	} {
		if got := meant(word, names); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
	if got := meant("word", nil); got != "" {
		t.Errorf("among no names: got %q", got)
	}
}

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "acb", 1},
		{"modle", "model", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 1}, {"abcd", "badc", 2},
	} {
		if got := edits(c.a, c.b); got != c.want {
			t.Errorf("%q, %q: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
