package v3import

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
)

// FuzzRead: any bytes are refused with a place inside the file, or read as a
// sound snapshot whose parents come before their children.
func FuzzRead(f *testing.F) {
	a, b := user("a", ""), user("b", "a")
	for _, text := range []string{
		"", v1, v3, join(v3, a, b), join(v3, a, "oops\n", b), join(v3, a, b[:30]), join(v1, flatUser("x"), flatUser("y")), join(v1, a, b),
		join(v3, b, a, a, compaction("c", "b", "a"), rec("label", "l", "c", `"targetId":"a","label":"x"`), rec("session_info", "i", "l", `"name":"n"`)),
		join(v3, a, rec("context_edit", "e", "a", `"targetId":"a","replacement":{"content":"x"}`), compaction("c", "e", "a"), rec("leaf", "f", "c", `"targetId":null`)),
		join(v3, a, rec("branch_summary", "s", "a", `"fromId":"a","summary":"x","usage":{"input":1}`), rec("custom", "k", "s", `"customType":"t","data":1`)),
		join(v3, a, strings.TrimSuffix(b, "\n"), "\x00", user("x", "y"), "\xff\n"),
	} {
		f.Add([]byte(text), false, false)
		f.Add([]byte(text), true, true)
	}
	f.Fuzz(func(t *testing.T, text []byte, salvage, newID bool) {
		checkRead(t, text, Options{Salvage: salvage, NewID: newID, Now: func() int64 { return 7 }})
	})
}

// checkRead reads a text and checks what must hold for any.
func checkRead(t *testing.T, text []byte, o Options) {
	s, err := Read(t.Context(), write(t, string(text)), o)
	var failure *Failure
	if errors.As(err, &failure) {
		if failure.Line < 1 || failure.Offset < 0 || failure.Offset > int64(len(text)) || failure.Code == "" {
			t.Fatalf("failure %+v", failure)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if err := store.CheckID(s.Header.ID); err != nil {
		t.Fatal(err)
	}
	entries := entriesOf(t, s)
	seen := map[string]bool{"": true}
	raw := int64(0)
	for _, e := range entries {
		if seen[e.ID] || !seen[e.ParentID] {
			t.Fatalf("entry %s on %s", e.ID, e.ParentID)
		}
		seen[e.ID] = true
		if ms, err := store.IDTime(e.ID); err != nil || ms != e.Timestamp {
			t.Fatalf("id %s: %v", e.ID, err)
		}
		if rawjson.Valid(e.Payload) != nil || rawjson.ValidUTF8(e.Payload) >= 0 || rawjson.KindOf(e.Payload) != rawjson.Object {
			t.Fatalf("payload %s", e.Payload)
		}
		if (e.Type == store.TypeCustom) != (e.CustomType != "") {
			t.Fatalf("entry %+v", e.Structure)
		}
		if e.CustomType == QuarantineType {
			raw++
		}
	}
	var kinds int64
	for _, k := range s.Report.Kinds {
		kinds += k.Count
	}
	if r := &s.Report; int64(len(entries)) != r.Entries || kinds != r.Entries-raw+r.Discarded {
		t.Fatalf("%d entries, %d of kinds, report %+v", len(entries), kinds, r)
	}
	for r, err := range s.Snapshot().Records {
		if err != nil {
			t.Fatal(err)
		}
		if r.Address.Namespace == "pi.entry.label" && !seen[r.Address.Key] {
			t.Fatalf("label of %s", r.Address.Key)
		}
	}
}

// TestTreeProperty builds random trees of records and compares what comes out
// with the tree without the records that leave, found the slow way.
func TestTreeProperty(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(r, "n")
		parents, kept := make([]int, n), make([]bool, n)
		text := v3
		for i := range n {
			parents[i] = rapid.IntRange(-1, i-1).Draw(r, "parent")
			kept[i] = rapid.Bool().Draw(r, "kept")
			parent := ""
			if parents[i] >= 0 {
				parent = nameOf(parents[i])
			}
			if kept[i] {
				text += user(nameOf(i), parent)
			} else {
				text += rec("model_change", nameOf(i), parent, `"provider":"p"`)
			}
		}
		above := func(i int) string {
			for i >= 0 && !kept[i] {
				i = parents[i]
			}
			if i < 0 {
				return ""
			}
			return nameOf(i)
		}
		var want, got [][2]string
		for i := range n {
			if kept[i] {
				want = append(want, [2]string{nameOf(i), above(parents[i])})
			}
		}
		s, err := Read(t.Context(), write(t, text), Options{})
		if err != nil {
			r.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		names := map[string]string{"": ""}
		for _, e := range entriesOf(t, s) {
			names[e.ID] = e.Message().Text()
			got = append(got, [2]string{names[e.ID], names[e.ParentID]})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			r.Fatal(diff)
		}
	})
}

func nameOf(i int) string { return string(rune('A'+i/26)) + string(rune('a'+i%26)) }
