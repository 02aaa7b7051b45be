package v3import

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestB04LongLine reads a line far longer than any buffer (B04).
func TestB04LongLine(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 5<<20/16)
	text := join(v3, user("a", ""), rec("message", "b", "a", `"message":{"role":"user","content":"`+big+`"}`), user("c", "b"))
	s, err := Read(t.Context(), write(t, text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var got []string
	for _, e := range entriesOf(t, s) {
		got = append(got, e.Message().Text())
	}
	if len(got) != 3 || got[0] != "a" || got[1] != big || got[2] != "c" {
		t.Errorf("%d entries", len(got))
	}
}

// TestStoppedSnapshot stops in the middle of a file that is read ahead.
func TestStoppedSnapshot(t *testing.T) {
	text := bytes.NewBufferString(v3)
	for i := range 2 * pipeFrom / 1000 {
		text.WriteString(rec("message", fmt.Sprint(i), "", `"message":{"role":"user","content":"`+strings.Repeat("x", 1000)+`"}`))
	}
	s, err := Read(t.Context(), write(t, text.String()), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for stop := range 3 {
		n := 0
		for _, err := range s.Snapshot().Records {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n > stop*500 {
				break
			}
		}
	}
	if got := int64(len(entriesOf(t, s))); got != s.Report.Entries {
		t.Errorf("%d of %d entries", got, s.Report.Entries)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(s.Path); err != nil {
		t.Fatal(err)
	}
}

// TestDeepChain walks neither recursively nor over and over: a chain of 45,000
// records with 9,000 compactions whose kept range starts on another branch, at
// the root, or nowhere.
func TestDeepChain(t *testing.T) {
	const n = 45_000
	text := bytes.NewBufferString(v3)
	text.WriteString(user("root", ""))
	text.WriteString(rec("compaction", "off", "root", `"summary":"x","firstKeptEntryId":"off"`))
	parent := "off"
	for i := range n {
		id := fmt.Sprint("r", i)
		switch {
		case i%15 == 0:
			text.WriteString(compaction(id, parent, "side"))
		case i%15 == 5:
			text.WriteString(compaction(id, parent, "root"))
		case i%15 == 10:
			text.WriteString(compaction(id, parent, id))
		default:
			text.WriteString(rec("model_change", id, parent, `"provider":"p"`))
		}
		parent = id
	}
	text.WriteString(user("side", "root"))
	s, err := Read(t.Context(), write(t, text.String()), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	entries := entriesOf(t, s)
	if got := len(entries); got != 3+n/5 {
		t.Errorf("%d entries", got)
	}
	if got, want := string(entries[3].Payload), `{"summary":"Sr5","retainedTail":[{"role":"user","content":"root"}],"tokensBefore":9,"fromHook":false}`; got != want {
		t.Errorf("got %s", got)
	}
	last := s.Report.Warnings[len(s.Report.Warnings)-1]
	if len(s.Report.Warnings) != warningsPerCode+1 || last.Message != fmt.Sprintf("and %d more like this from here on", (n+14)/15-warningsPerCode) {
		t.Errorf("%d warnings, last %+v", len(s.Report.Warnings), last)
	}
}

// TestReversedChain has every parent behind its child.
func TestReversedChain(t *testing.T) {
	const n = 20_000
	text := bytes.NewBufferString(v3)
	for i := n; i > 0; i-- {
		text.WriteString(user(fmt.Sprint(i), fmt.Sprint(i-1)))
	}
	text.WriteString(user("0", ""))
	s, err := Read(t.Context(), write(t, text.String()), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for i, e := range entriesOf(t, s) {
		if got := e.Message().Text(); got != fmt.Sprint(i) {
			t.Fatalf("entry %d is %s", i, got)
		}
	}
}

func TestIDsAreStable(t *testing.T) {
	text := join(v3, user("a", ""), user("b", "a"))
	path := write(t, text)
	ids := func(o Options) (out []string) {
		s, err := Read(t.Context(), path, o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		for r, err := range s.Snapshot().Records {
			if err != nil {
				t.Fatal(err)
			}
			if r.Entry != nil {
				out = append(out, r.Entry.ID)
			} else if r.Usage != nil {
				out = append(out, r.Usage.ID)
			}
		}
		return out
	}
	first := ids(Options{})
	if diff := cmp.Diff(first, ids(Options{Path: "elsewhere"})); diff != "" {
		t.Error(diff)
	}
	if other := ids(Options{NewID: true}); other[0] == first[0] {
		t.Errorf("two sessions share entry id %s", other[0])
	}
	if err := os.WriteFile(path, []byte(text+user("c", "b")), 0o600); err != nil {
		t.Fatal(err)
	}
	if grown := ids(Options{}); grown[0] != first[0] || grown[1] != first[1] {
		t.Errorf("%v became %v", first, grown)
	}
}

func TestHeader(t *testing.T) {
	text := `{"type":"session","version":3,"id":"a b","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","parentSession":"/p.jsonl","provider":"p","metadata":{"k": 1.50}}` + "\n"
	path := write(t, text)
	s, err := Read(t.Context(), path, Options{Path: "/named.jsonl"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	raw, err := s.Header.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"v":4,"kind":"header","id":"` + s.Header.ID + `","storageVersion":2,"createdAt":1767225600000,"cwd":"/w","legacyParentSessionPath":"/p.jsonl",` +
		`"legacySessionId":"a b","generation":1,"source":{"format":"v3","id":"a b","sha256":"` + s.Digest + `","bytes":` + fmt.Sprint(len(text)) +
		`,"version":3,"nextSeq":4,"path":"/named.jsonl"},"legacyHeader":{"provider":"p","metadata":{"k":1.50}}}`
	if diff := cmp.Diff(want, string(raw)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestChangedSource writes to the file between the passes.
func TestChangedSource(t *testing.T) {
	text := join(v3, user("a", ""), user("b", "a"))
	later := time.Now().Add(time.Hour)
	for _, c := range []struct {
		name   string
		change func(path string) error
		grown  int64
		bad    bool
	}{
		{"truncated", func(path string) error { return os.Truncate(path, int64(len(v3)+5)) }, 0, true},
		{"other text of the same length", func(path string) error {
			return errors.Join(os.WriteFile(path, []byte(strings.Replace(text, `"content":"b"`, `"content":"x"`, 1)), 0o600), os.Chtimes(path, later, later))
		}, 0, true},
		{"grown", func(path string) error { return os.WriteFile(path, []byte(text+user("c", "b")), 0o600) }, 122, false},
		{"touched", func(path string) error { return os.Chtimes(path, later, later) }, 0, false},
		{"replaced by another file", func(path string) error {
			return errors.Join(os.WriteFile(path+".new", nil, 0o600), os.Rename(path+".new", path))
		}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, text)
			s, err := Read(t.Context(), path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			if err := c.change(path); err != nil {
				t.Fatal(err)
			}
			err = nil
			n := 0
			for _, e := range s.Snapshot().Records {
				n++
				if e != nil {
					err = e
				}
			}
			var changed *Changed
			if errors.As(err, &changed) != c.bad || !c.bad && (err != nil || n != 5) || s.Grown != c.grown {
				t.Errorf("error %v after %d records, grown %d", err, n, s.Grown)
			}
		})
	}
}

func TestIsLegacy(t *testing.T) {
	for text, want := range map[string]bool{
		v1: true, v3: true, "\xef\xbb\xbf" + v3: true, "\n\x00 " + v3: true, "oops\n" + v3: true, v3[:30]: true,
		"": false, "\n": false, `{"v":4,"kind":"header","id":"s"}`: false, user("a", "") + v3: false, `{"type":"ses`: false, "[]": false,
		`{"id":"s","type":"session"}`: true, `{"id":"` + strings.Repeat("x", 100): false,
	} {
		if got := IsLegacy([]byte(text)); got != want {
			t.Errorf("%.40q: %v", text, got)
		}
	}
}

func TestCollect(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.jsonl", "a.jsonl", "notes.md", "a.jsonl.bak", "deep/c.jsonl", "odd.jsonl/in.jsonl"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "link.jsonl")); err != nil {
		t.Fatal(err)
	}
	collect := func(recursive bool, paths ...string) string {
		for i := range paths {
			paths[i] = filepath.Join(dir, paths[i])
		}
		found := Collect(paths, recursive)
		var out []string
		for _, s := range found.Sources {
			out = append(out, s.Path)
		}
		return strings.ReplaceAll(strings.Join(append(out, found.Notes...), "\n"), dir+"/", "")
	}
	notes := "\npassed over files not called *.jsonl: 2, the first a.jsonl.bak\npassed over folders called like session files: 1, the first odd.jsonl\npassed over symbolic links: 1, the first link.jsonl"
	for _, c := range []struct{ name, got, want string }{
		{"folder", collect(false, ""), "a.jsonl\nb.jsonl" + notes},
		{"recursive", collect(true, ""), "a.jsonl\nb.jsonl\ndeep/c.jsonl" + notes},
		{"named", collect(false, "link.jsonl", "a.jsonl.bak", "gone", "a.jsonl", "./a.jsonl"), "a.jsonl\na.jsonl.bak\ngone\nlink.jsonl"},
		{"named folder", collect(false, "odd.jsonl"), "odd.jsonl/in.jsonl"},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
}
