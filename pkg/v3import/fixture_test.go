package v3import

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/store"
)

// Lines of hand-written fixtures. Every record has a second of its own.
const (
	v3     = `{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}` + "\n"
	v2     = `{"type":"session","version":2,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}` + "\n"
	v1     = `{"type":"session","id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}` + "\n"
	second = `,"timestamp":"2026-01-01T00:00:01.000Z"`
)

// rec writes a record; parent "" is null.
func rec(typ, id, parent, rest string) string {
	p := "null"
	if parent != "" {
		p = `"` + parent + `"`
	}
	if rest != "" {
		rest = "," + rest
	}
	return `{"type":"` + typ + `","id":"` + id + `","parentId":` + p + second + rest + "}\n"
}

// user and bot are a question and an answer whose text is their id.
func user(id, parent string) string {
	return rec("message", id, parent, `"message":{"role":"user","content":"`+id+`"}`)
}

func bot(id, parent string) string {
	return rec("message", id, parent, `"message":{"role":"assistant","content":[],"usage":{"input":1,"output":2,"totalTokens":3,"cost":{"total":0.5}}}`)
}

// flat is a record as version 1 writes it, without ids.
func flat(typ, rest string) string {
	return fmt.Sprintf(`{"type":%q%s,%s}`, typ, second, rest) + "\n"
}

func flatUser(text string) string {
	return flat("message", `"message":{"role":"user","content":"`+text+`"}`)
}

// write puts a fixture into a file of its own.
func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// outcome is what a test compares: the tree in compact notation, one entry a
// line as LINE<PARENT TYPE PAYLOAD, then leaf, name and labels; the warnings as
// LINE CODE and the failure as CODE LINE, with LINE+N for N bytes into the line.
type outcome struct {
	Tree     string
	Warnings string
	Failure  string
}

// readText reads a fixture and describes what came of it.
func readText(t testing.TB, text string, o Options) outcome {
	t.Helper()
	o.Path = "f.jsonl"
	o.Now = func() int64 { return 1767225600000 }
	s, err := Read(context.Background(), write(t, text), o)
	var f *Failure
	if errors.As(err, &f) {
		return outcome{Failure: f.Code + " " + spot(text, f.Line, f.Offset), Warnings: describeWarnings(text, f.Warnings)}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	return outcome{Tree: describeTree(t, s), Warnings: describeWarnings(text, s.Report.Warnings)}
}

func describeWarnings(text string, ws []Warning) string {
	var out []string
	for _, w := range ws {
		out = append(out, spot(text, w.Line, w.Offset)+" "+w.Code)
	}
	return strings.Join(out, "\n")
}

// spot names a place by its line and how far into it the offset is.
func spot(text string, line, offset int64) string {
	start := int64(0)
	for range line - 1 {
		start += int64(strings.IndexByte(text[start:], '\n')) + 1
	}
	if offset == start {
		return fmt.Sprint(line)
	}
	return fmt.Sprintf("%d%+d", line, offset-start)
}

// places names entries by their line; the second record of a line is 4b.
func places(s *Session) map[string]string {
	names := map[string]string{"": "-"}
	var line int64
	n := 0
	for _, r := range s.tree.records {
		if r.line != line {
			line, n = r.line, 0
		}
		if r.id != "" {
			names[r.id] = fmt.Sprint(r.line)
			if n > 0 {
				names[r.id] += string(rune('a' + n))
			}
		}
		n++
	}
	return names
}

func describeTree(t testing.TB, s *Session) string {
	t.Helper()
	names := places(s)
	var out []string
	seq := int64(0)
	snap := s.Snapshot()
	for r, err := range snap.Records {
		if err != nil {
			t.Fatal(err)
		}
		if seq++; r.Seq != seq {
			t.Errorf("record %d has seq %d", seq, r.Seq)
		}
		switch {
		case r.Entry != nil:
			e := r.Entry
			typ := string(e.Type)
			if e.CustomType != "" {
				typ += "/" + e.CustomType
			}
			payload := string(e.Payload)
			for id, name := range names {
				if id != "" {
					payload = strings.ReplaceAll(payload, id, "#"+name)
				}
			}
			out = append(out, fmt.Sprintf("%s<%s %s %s", names[e.ID], names[e.ParentID], typ, payload))
		case r.Usage != nil:
			if !r.Usage.Adjustment || string(r.Usage.Details) != `{"source":"v3-import"}` || r.Usage.EntryID != "" {
				t.Errorf("usage row %+v", r.Usage)
			}
		case r.Address.Namespace == "pi.lane.leaf":
			if v := string(r.Value); v != "null" {
				out = append(out, "leaf "+names[v[1:len(v)-1]])
			} else {
				out = append(out, "leaf -")
			}
		case r.Address.Namespace == "pi.lane.state":
			if string(r.Value) != `{"currentOperationId":null,"pendingNextRun":[]}` {
				t.Errorf("lane state %s", r.Value)
			}
		case r.Address.Namespace == "pi.session.name":
			out = append(out, "name "+string(r.Value))
		case r.Address.Namespace == "pi.entry.label":
			out = append(out, "label "+names[r.Address.Key]+" "+string(r.Value))
		default:
			t.Errorf("unexpected record %+v", r)
		}
	}
	if snap.NextSeq != seq+1 {
		t.Errorf("next seq %d after %d records", snap.NextSeq, seq)
	}
	return strings.Join(out, "\n")
}

// said is a plain question; short writes it as its text.
var said = regexp.MustCompile(`message \{"message":\{"role":"user","content":"([^"]*)"\}\}`)

func short(tree string) string { return said.ReplaceAllString(tree, "user $1") }

func entriesOf(t testing.TB, s *Session) []store.Entry {
	t.Helper()
	var out []store.Entry
	for r, err := range s.Snapshot().Records {
		if err != nil {
			t.Fatal(err)
		}
		if r.Entry != nil {
			out = append(out, *r.Entry)
		}
	}
	return out
}
