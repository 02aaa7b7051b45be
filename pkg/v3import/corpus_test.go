package v3import

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
)

// corpusDir holds real files, which are no part of this project.
var corpusDir = filepath.Join("..", "..", "..", "shared", "v3")

func corpus(t testing.TB) {
	t.Helper()
	if _, err := os.Stat(corpusDir); err != nil {
		t.Skipf("no real session files in %s", corpusDir)
	}
}

// corpusWant was counted by another program. Costs are summed left to right.
var corpusWant = [][2]string{
	{"01-v1-before-compaction.jsonl", "entries 992 discarded 10 messages 990 usage 3689 187895 42.59590750000001 leaf 1002 roots 1 tails [66 77]"},
	{"02-v1-large-session.jsonl", "entries 914 discarded 104 messages 914 usage 1049 83156 30.330197699999985 leaf 1019 roots 1 tails []"},
	{"04-v1-glued-middle.jsonl", "entries 455 discarded 8 messages 454 usage 1568 46995 19.965164500000007 leaf 463 roots 1 tails [108]"},
	{"07-v3-model-changes-custom-msg.jsonl", "entries 140 discarded 7 messages 134 usage 2665272 8472 0.0 leaf 143 roots 1 tails []"},
	{"09-v3-smoke-hdr-provider.jsonl", "entries 2 discarded 0 messages 2 usage 0 0 0.0 leaf 3 roots 1 tails []"},
	{"10-v3-branch-compaction-small.jsonl", "entries 12 discarded 0 messages 9 usage 4 4 0.0 leaf 13 roots 1 tails [2]"},
	{"12-v3-all-entry-types.jsonl", "entries 8 discarded 4 messages 5 usage 11 7 0.0033 leaf 11 roots 1 tails [4] name Pi fixture manifest review"},
	{"13-v3-torn-tail.jsonl", "corrupt 3:326"},
	{"15-v3-prime-child-parentsession.jsonl", "entries 3 discarded 1 messages 2 usage 7 3 0.0 leaf 5 roots 1 tails [] name fixture-child"},
	{"17-v3-parent-is-session-id.jsonl", "entries 8 discarded 2 messages 7 usage 0 0 0.0 leaf 11 roots 4 tails []"},
	{"19-v3-openclaw-small.jsonl", "entries 3 discarded 1 messages 3 usage 0 0 0.0 leaf 5 roots 2 tails []"},
	{"21-v3-header-only-no-eol.jsonl", "entries 0 discarded 0 messages 0 usage 0 0 0.0 leaf 0 roots 0 tails []"},
	{"22-v3-switchboard.jsonl", "entries 8 discarded 4 messages 8 usage 1890 46 0.012366000000000002 leaf 13 roots 1 tails []"},
	{"23-v3-custom-entries.jsonl", "entries 6 discarded 0 messages 2 usage 0 0 0.0 leaf 7 roots 1 tails []"},
	{"25-v1-senpi-multi-agent.jsonl", "entries 7 discarded 3 messages 7 usage 100 44 0.0 leaf 11 roots 1 tails []"},
	{"27-v1-senpi-custom-fromhook.jsonl", "entries 11 discarded 0 messages 8 usage 135 44 0.0 leaf 12 roots 1 tails [0]"},
	{"28-v1-senpi-headerless.jsonl", "corrupt 1:0"},
	{"31-v1-senpi-orphan-toolresult.jsonl", "entries 5 discarded 0 messages 5 usage 20 18 0.0 leaf 6 roots 1 tails []"},
	{"32-v1-senpi-large-bash.jsonl", "entries 6 discarded 0 messages 6 usage 455 35 0.0 leaf 7 roots 1 tails []"},
	{"34-v3-real-image.jsonl", "entries 4 discarded 2 messages 4 usage 7143 232 0.041515 leaf 7 roots 1 tails []"},
	{"35-v3-real-crud.jsonl", "entries 10 discarded 2 messages 10 usage 16652 655 0.09963500000000002 leaf 13 roots 1 tails []"},
	{"38-v1-prompt-cache-replay.jsonl", "entries 6 discarded 0 messages 6 usage 85 47 0.0 leaf 7 roots 1 tails []"},
	{"45-v1-garbage-line-with-ids.jsonl", "corrupt 2:78"},
	{"48-v3-inspector-branching.jsonl", "entries 7 discarded 1 messages 5 usage 45 27 0.08600000000000001 leaf 9 roots 1 tails [2]"},
	{"49-v3-unknown-ancestor.jsonl", "entries 4 discarded 0 messages 2 usage 28 14 0.041999999999999996 leaf 5 roots 1 tails []"},
}

func TestCorpus(t *testing.T) {
	corpus(t)
	for _, c := range corpusWant {
		t.Run(c[0], func(t *testing.T) {
			path := filepath.Join(corpusDir, c[0])
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := corpusLine(t, path, squeeze(before)); got != c[1] {
				t.Errorf("got  %s\nwant %s", got, c[1])
			}
			after, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file is not what it was: %v", err)
			}
		})
	}
}

// corpusLine sums up what came of a file whose squeezed text is source.
func corpusLine(t *testing.T, path string, source []byte) string {
	s, err := Read(t.Context(), path, Options{})
	var f *Failure
	if errors.As(err, &f) {
		return fmt.Sprintf("%s %d:%d", f.Code, f.Line, f.Offset)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var out strings.Builder
	u := s.Report.Usage
	fmt.Fprintf(&out, "entries %d discarded %d messages %d usage %d %d %s", s.Report.Entries, s.Report.Discarded, s.Report.Messages, u.Input, u.Output, cost(u.Cost.Total))
	leaf := int64(0)
	if s.tree.leaf != none {
		leaf = s.tree.records[s.tree.leaf].line
	}
	var roots int
	var tails []int
	seen := make(map[string]bool)
	for _, e := range entriesOf(t, s) {
		if e.ParentID == "" {
			roots++
		} else if !seen[e.ParentID] {
			t.Errorf("entry %s comes before its parent", e.ID)
		}
		seen[e.ID] = true
		if ms, err := store.IDTime(e.ID); err != nil || ms != e.Timestamp {
			t.Errorf("id %s of an entry of %d: %v", e.ID, e.Timestamp, err)
		}
		if e.Type == store.TypeCompaction {
			tails = append(tails, tailOf(t, e, source))
		}
		if m := e.Message(); m != nil && m.Role() != "custom" && !bytes.Contains(source, m) {
			t.Errorf("message of entry %s is not in the source", e.ID)
		}
	}
	fmt.Fprintf(&out, " leaf %d roots %d tails %v", leaf, roots, tails)
	if s.tree.title != "" {
		out.WriteString(" name " + s.tree.title)
	}
	return out.String()
}

// tailOf counts a tail's messages, each of which must stand in the source.
func tailOf(t *testing.T, e store.Entry, source []byte) (n int) {
	tail, _ := rawjson.Get(e.Payload, "retainedTail")
	for m, err := range rawjson.Elements(tail) {
		if err != nil || !bytes.Contains(source, m) {
			t.Errorf("message of a tail is not in the source: %v", err)
		}
		n++
	}
	return n
}

func cost(f float64) string {
	s := fmt.Sprint(f)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// squeeze is a text of JSON lines without insignificant white space.
func squeeze(source []byte) (out []byte) {
	for line := range bytes.Lines(source) {
		next, err := rawjson.Compact(out, line)
		if err != nil {
			next = append(out, line...) // a line of glued records, which holds none
		}
		out = next
	}
	return out
}
