package tool

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTail(t *testing.T) {
	for _, tt := range []struct {
		name       string
		writes     []string
		text, line string
	}{
		{"nothing", nil, "", ""},
		{"all of it", []string{"0123456", "789"}, "0123456789", "0123456789"},
		{"from a line", []string{"0123\n5678\nab"}, "…\n5678\nab", "… 5678 ab"},
		{"from within a line", []string{"0123456789ab"}, "…\n23456789ab", "… 23456789ab"},
		{"the last line is empty", []string{"0123456789\n"}, "…\n123456789\n", "… 123456789"},
		{"broken characters", []string{"a\xff b"}, "a\uFFFD b", "a\uFFFD b"},
		{"exactly what fits, later", []string{"0123456789", "abcdefghij"}, "…\nabcdefghij", "… abcdefghij"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tail := &Tail{Limit: 10}
			for _, w := range tt.writes {
				if n, err := tail.Write([]byte(w)); n != len(w) || err != nil {
					t.Errorf("%d, %v", n, err)
				}
			}
			if got := tail.Text(); got != tt.text {
				t.Errorf("the text is %q", got)
			}
			if got := tail.Line(); got != tt.line {
				t.Errorf("the line is %q", got)
			}
		})
	}
}

// It is the end of everything, however that comes, and little more is held.
func TestTailProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tail := &Tail{Limit: rapid.IntRange(1, 20).Draw(t, "limit")}
		var all strings.Builder
		for i := range rapid.IntRange(0, 8).Draw(t, "writes") {
			text := strings.Repeat(fmt.Sprint(i), rapid.IntRange(0, 50).Draw(t, "length"))
			all.WriteString(text)
			_, _ = tail.Write([]byte(text))
			if len(tail.kept) > 2*tail.Limit {
				t.Fatalf("%d bytes are kept", len(tail.kept))
			}
		}
		want := all.String()
		if over := len(want) - tail.Limit; over > 0 {
			want = "…\n" + want[over:]
		}
		if got := tail.Text(); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}
