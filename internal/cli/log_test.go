package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/store"
)

// grown makes a tree of user messages, each "id<parent" in seq order.
func grown(nodes ...string) *tree {
	t := &tree{labels: map[string]string{}, lanes: map[string][]string{}}
	for i, node := range nodes {
		id, parent, _ := strings.Cut(node, "<")
		t.entries = append(t.entries, store.Entry{
			Structure: store.Structure{ID: id, ParentID: parent, Seq: int64(i + 1), Type: store.TypeMessage},
			Payload:   fmt.Appendf(nil, `{"message":{"role":"user","content":"say %s"}}`, id),
		})
	}
	return t
}

func drawn(t *testing.T, tree *tree) string {
	t.Helper()
	var b bytes.Buffer
	if err := tree.draw(&b, &printer{streams: &streams{}}); err != nil {
		t.Fatal(err)
	}
	return "\n" + b.String()
}

func TestLogDrawsMainStraightDown(t *testing.T) {
	tree := grown("a", "b<a", "c<b", "d<b", "e<c", "f<a", "g<f", "h")
	tree.main = "e"
	tree.lanes = map[string][]string{"e": {"main", "second"}, "g": {"side"}, "": {"fresh"}}
	tree.labels = map[string]string{"d": "tried"}
	want := `
○ root [fresh]
├─● h user: say h
● a user: say a
├─● f user: say f
│ ● g user [side]: say g
● b user: say b
├─● d user «tried»: say d
● c user: say c
● e user [main, second]: say e
`
	if diff := cmp.Diff(want, drawn(t, tree)); diff != "" {
		t.Error(diff)
	}
}

func TestLogGoesTowardsTheNewestElsewhere(t *testing.T) {
	// Main stands at the root: the branch that was changed last goes straight on,
	// also inside of others.
	tree := grown("a", "b<a", "c<a", "d<b", "e<b", "f<e", "g<d")
	want := `
● a user: say a
├─● c user: say c
● b user: say b
├─● e user: say e
│ ● f user: say f
● d user: say d
● g user: say g
`
	if diff := cmp.Diff(want, drawn(t, tree)); diff != "" {
		t.Error(diff)
	}
}

func TestLogOfNothing(t *testing.T) {
	if got := drawn(t, grown()); got != "\n" {
		t.Errorf("drew %q", got)
	}
}

func TestLogEscapesAndCuts(t *testing.T) {
	tree := grown("a")
	tree.entries[0].Payload = []byte(`{"message":{"role":"user","content":"` + `\u001b[31m` + strings.Repeat("x", 500) + `\nsecond line"}}`)
	tree.labels["a"] = "l\x1bx"
	got := drawn(t, tree)
	if strings.ContainsAny(got, "\x1b") || !strings.HasSuffix(got, "…\n") || strings.Contains(got, "second") || len(got) > 160 {
		t.Errorf("drew %q", got)
	}
}

func TestLogOfALongConversation(t *testing.T) {
	// Depth must not be recursion, nor cost a prefix a level.
	nodes := []string{"0"}
	for i := 1; i < 20_000; i++ {
		nodes = append(nodes, fmt.Sprintf("%d<%d", i, i-1))
	}
	if got := strings.Count(drawn(t, grown(nodes...)), "\n● "); got != 20_000 {
		t.Errorf("drew %d entries", got)
	}
}
