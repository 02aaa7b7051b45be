package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-run/drover/internal/rawjson"
)

// editArgs is the arguments of an edit, given old and new texts in turn.
func editArgs(path string, texts ...string) string {
	var edits []string
	for i := 0; i < len(texts); i += 2 {
		edits = append(edits, string(object{}.text("oldText", texts[i]).text("newText", texts[i+1]).raw()))
	}
	return string(append(append(object{}.text("path", path).key("edits"), "["+strings.Join(edits, ",")+"]"...).raw(), ""...))
}

func TestEdit(t *testing.T) {
	cases := []struct {
		name, before string
		texts        []string
		after, err   string
	}{
		{"one", "a\nb\nc\n", []string{"b", "B"}, "a\nB\nc\n", ""},
		{"several, in any order", "a\nb\nc\n", []string{"c", "C", "a\n", ""}, "b\nC\n", ""},
		{"next to each other", "abc", []string{"a", "1", "b", "2", "c", "3"}, "123", ""},
		{"what one adds is not there for another", "ab", []string{"a", "b", "b", "a"}, "ba", ""},
		{"everything", "abc", []string{"abc", ""}, "", ""},
		{"more than one line", "a\nb\nc", []string{"a\nb\n", "x\n"}, "x\nc", ""},
		{"carriage returns", "a\r\nb\r\nc\r\n", []string{"a\nb", "a\nx\nb"}, "a\r\nx\r\nb\r\nc\r\n", ""},
		{"carriage returns, written out", "a\r\nb\r\n", []string{"a\r\n", "x\r\ny\r\n"}, "x\r\ny\r\nb\r\n", ""},
		{"carriage returns, within a line", "a\r\nb\r\n", []string{"a", "x\ny"}, "x\r\ny\r\nb\r\n", ""},
		{"no carriage returns", "a\nb\n", []string{"a\r\nb", "x\r\ny"}, "x\ny\n", ""},
		{"mixed, the one replaced counts", "a\r\nb\nc\r\nd\r\n", []string{"b\nc", "b\nx\nc"}, "a\r\nb\nx\nc\r\nd\r\n", ""},
		{"mixed, the majority counts", "a\nb\nc\r\n", []string{"c", "x\nc"}, "a\nb\nx\nc\r\n", ""},
		{"up to a line end", "a\r\nb\r\n", []string{"\nb", ""}, "a\r\n", ""},
		{"byte order mark", "\ufeffa\r\n", []string{"a", "b"}, "\ufeffb\r\n", ""},
		{"bytes that are no text", "\xff\x00a\xfe", []string{"a", "é"}, "\xff\x00é\xfe", ""},
		{"not found", "abc", []string{"a", "1", "x\ny", ""}, "", `edit 2: oldText does not occur in the file: "x\ny"`},
		{"found twice", "a\nb\na\n", []string{"a", "1"}, "", "edit 1: oldText occurs more than once, on lines 1 and 3 at least; give more of what surrounds it"},
		{"found twice, overlapping itself", "aaa", []string{"aa", "1"}, "", "edit 1: oldText occurs more than once, on lines 1 and 1 at least; give more of what surrounds it"},
		{"overlapping", "x\nabcd", []string{"bcd", "1", "abc", "2"}, "", "edits 1 and 2 overlap on line 2; make them one"},
		{"within another", "abcd", []string{"abcd", "1", "b", "2"}, "", "edits 1 and 2 overlap on line 1; make them one"},
		{"the same twice", "abcd", []string{"b", "1", "b", "2"}, "", "edits 1 and 2 overlap on line 1; make them one"},
		{"no change", "a\r\n", []string{"a\n", "a\n"}, "", "the edits change nothing"},
		{"empty file", "", []string{"a", "b"}, "", `edit 1: oldText does not occur in the file: "a"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := put(t, dir, "f", c.before)
			if err := os.Chmod(path, 0o711); err != nil {
				t.Fatal(err)
			}
			got := call(t, toolNamed("edit", Options{CWD: dir}), editArgs("f", c.texts...))
			want := outcome{Err: "edit f: " + c.err}
			after := c.before
			if c.err == "" {
				n := len(c.texts) / 2
				want = outcome{Text: fmt.Sprintf("Edited f: %d %s.", n, plural(n, "replacement")), Details: got.Details}
				after = c.after
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if now := content(t, path); now != after {
				t.Errorf("the file holds %q, want %q", now, after)
			}
			if info, err := os.Stat(path); err != nil || info.Mode() != 0o711 || names(t, dir) != "f" {
				t.Errorf("mode %v, %v; in the folder: %s", info.Mode(), err, names(t, dir))
			}
		})
	}
}

func TestEditDiff(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "f", "\ufeff"+strings.ReplaceAll(numbered(1, 20), "\n", "\r\n")+"\xffend")
	got := call(t, toolNamed("edit", Options{CWD: dir}), editArgs("f", "\n3\n4\n", "\n3\nfour\n", "end", "END"))
	want := outcome{
		Text: "Edited f: 2 replacements.",
		Details: string(object{}.text("diff", `--- f
+++ f
@@ -1,7 +1,7 @@
 1
 2
 3
-4
+four
 5
 6
 7
@@ -18,4 +18,4 @@
 18
 19
 20
-�end
\ No newline at end of file
+�END
\ No newline at end of file
`).raw())}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEditLargeDiff(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "f", "start"+strings.Repeat("é", maxDiff))
	got := call(t, toolNamed("edit", Options{CWD: dir}), editArgs("f", "start", "begin"))
	diff, _ := rawjson.GetString([]byte(got.Details), "diff")
	if cut, _ := rawjson.GetBool([]byte(got.Details), "diffTruncated"); !cut || len(diff) > maxDiff+len("…") || !strings.HasPrefix(diff, "--- f\n+++ f\n@@ -1 +1 @@\n-start") {
		t.Errorf("%d bytes: %s", len(diff), clip(got.Details, 200))
	}
}

func TestEditRefuses(t *testing.T) {
	dir := t.TempDir()
	e := toolNamed("edit", Options{CWD: dir})
	put(t, dir, "f", "a")
	if err := os.Truncate(put(t, dir, "big", "a"), maxEdited+1); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{
		editArgs("none", "a", "b"):                           "edit file: stat " + dir + "/none: no such file or directory",
		editArgs(".", "a", "b"):                              "edit file: " + dir + " is a directory",
		editArgs("big", "a", "b"):                            fmt.Sprintf("edit file: %s/big has %d bytes, %d are the most", dir, maxEdited+1, maxEdited),
		`{"path":"f","edits":[]}`:                            "$.edits is an array with 0 elements that must have at least 1",
		editArgs("f", "", "b"):                               `$.edits[0].oldText is a string ("") of 0 characters that must have at least 1`,
		`{"path":"f","oldText":"a","newText":"b"}`:           `$ is an object without the required member "edits"`,
		`{"path":"f","edits":[{"oldText":"a"}]}`:             `$.edits[0] is an object without the required member "newText"`,
		`{"path":"f","edits":"[{\"oldText\":\"a\"}]"}`:       `$.edits is a string ("[{\"oldText\":\"a\"}]") that must be an array`,
		editArgs("f", "a", "b")[:20]:                         "read arguments: ",
		`{"path":"f","edits":[{"oldText":"a","newText":1}]}`: `$.edits[0].newText is a number (1) that must be a string`,
	}
	for args, want := range cases {
		if got := call(t, e, args); got.Err != want && !(strings.HasSuffix(want, ": ") && strings.HasPrefix(got.Err, want)) {
			t.Errorf("%s\ngot  %+v\nwant %s", args, got, want)
		}
	}
	if got := content(t, filepath.Join(dir, "f")); got != "a" {
		t.Errorf("the file holds %q", got)
	}
}

// FuzzEdit checks changes of any text against the rules: each old text is there
// once, everything around it stays byte for byte, and what cannot be done leaves
// an error.
func FuzzEdit(f *testing.F) {
	f.Add("a\r\nb\nc", "b", "x\ny", "c", "")
	f.Add("\ufeffone two", "one", "two", "two", "one")
	f.Add("aaa", "aa", "b", "a", "")
	f.Add("\r\r\n\n\r", "\n", "\r\n", "\r", "x")
	f.Fuzz(func(t *testing.T, content, old1, new1, old2, new2 string) {
		changes := []change{{lineFeeds(old1), lineFeeds(new1)}, {lineFeeds(old2), lineFeeds(new2)}}
		done, err := applyChanges(content, changes)
		plain := lineFeeds(strings.TrimPrefix(content, utf8BOM))
		want, possible := replaceBoth(plain, changes[0], changes[1])
		if err != nil {
			if possible && want != plain {
				t.Fatalf("%q %q: %v, want %q", content, changes, err, want)
			}
			return
		}
		if !possible || done.before != plain || done.after != want {
			t.Fatalf("%q %q: possible %v, got %q, want %q", content, changes, possible, done.after, want)
		}
		if strings.HasPrefix(content, utf8BOM) && !strings.HasPrefix(done.content, utf8BOM) {
			t.Fatalf("%q lost its mark: %q", content, done.content)
		}
		// What lies before the first change and behind the last one is untouched.
		first := min(strings.Index(plain, changes[0].old), strings.Index(plain, changes[1].old))
		lead := prefixWith(content, plain[:first])
		if !strings.HasPrefix(done.content, lead) {
			t.Fatalf("%q: %q does not start with %q", content, done.content, lead)
		}
		returns := strings.Contains(content, "\r") || strings.Contains(new1+new2, "\r")
		if !returns && strings.TrimPrefix(done.content, utf8BOM) != want {
			t.Fatalf("%q: got %q, want %q", content, done.content, want)
		}
	})
}

// replaceBoth is the definition of two changes for a text with line feeds only.
func replaceBoth(text string, a, b change) (string, bool) {
	if a.old == "" || b.old == "" || occurrences(text, a.old) != 1 || occurrences(text, b.old) != 1 {
		return "", false
	}
	i, j := strings.Index(text, a.old), strings.Index(text, b.old)
	if i > j {
		i, j, a, b = j, i, b, a
	}
	if i+len(a.old) > j {
		return "", false
	}
	return text[:i] + a.new + text[i+len(a.old):j] + b.new + text[j+len(b.old):], true
}

func occurrences(text, s string) int {
	n := 0
	for i := range len(text) {
		if strings.HasPrefix(text[i:], s) {
			n++
		}
	}
	return n
}

// prefixWith is the shortest start of content that reads as lead when its mark is
// dropped and its line ends are line feeds.
func prefixWith(content, lead string) string {
	for i := range len(content) + 1 {
		if lineFeeds(strings.TrimPrefix(content[:i], utf8BOM)) == lead {
			return content[:i]
		}
	}
	return content
}

// TestEditProperties checks line ends and the diff on texts of lines.
func TestEditProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "lines")
		var text, after strings.Builder
		var changes []change
		for i := range n {
			end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")
			line := fmt.Sprintf("<%d>", i)
			text.WriteString(line + end)
			if rapid.Bool().Draw(t, "changed") {
				changes = append(changes, change{line + "\n", line + "new\n" + line + "\n"})
				after.WriteString(line + "new" + end + line + end)
			} else {
				after.WriteString(line + end)
			}
		}
		if len(changes) == 0 {
			return
		}
		changes = rapid.Permutation(changes).Draw(t, "order")
		done, err := applyChanges(text.String(), changes)
		if err != nil || done.content != after.String() {
			t.Fatalf("got %q, %v, want %q", done.content, err, after.String())
		}
		if got := patched(done.before, unifiedDiff("f", done.before, done.after)); got != done.after {
			t.Fatalf("the diff makes %q of %q", got, done.before)
		}
	})
}

// patched applies a unified diff to a text that ends with a line end.
func patched(text, diff string) string {
	lines := strings.SplitAfter(text, "\n")
	var out []string
	at := 0
	for line := range strings.Lines(diff) {
		var from int
		if n, _ := fmt.Sscanf(line, "@@ -%d", &from); n == 1 {
			out = append(out, lines[at:from-1]...)
			at = from - 1
			continue
		}
		switch {
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
		case line[0] == '+':
			out = append(out, line[1:])
		default:
			if lines[at] != line[1:] {
				return "no patch for " + lines[at] + ": " + line
			}
			if line[0] == ' ' {
				out = append(out, lines[at])
			}
			at++
		}
	}
	return strings.Join(append(out, lines[at:]...), "")
}

func BenchmarkEdit(b *testing.B) {
	text := numbered(1, 100_000)
	changes := []change{{"\n50000\n", "\nhalf\n"}, {"\n99999\n", "\n"}}
	for b.Loop() {
		done, err := applyChanges(text, changes)
		if err != nil {
			b.Fatal(err)
		}
		if diff := unifiedDiff("f", done.before, done.after); len(diff) > 1000 {
			b.Fatal(len(diff))
		}
	}
}
