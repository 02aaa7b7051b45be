package jsonl_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
)

// A last line cut at any byte: the readers see the commits before it, the next
// owner appends on a line of its own (bug B01).
func TestB01TornTailAtEveryByte(t *testing.T) {
	lastCommits := map[string]store.Tx{
		"one value":    {store.NewValue[string]("app", "é").Set("gr\u00fc\u00df \U0001F600")},
		"an array":     {user("e9", "e1", "\u4f1a\u8a71"), store.LaneLeaf("main").Set("e9"), store.NewList[string]("app", "l").Append("\u00e9")},
		"a whole list": {store.NewList[string]("app", "l").Append("1"), store.NewList[string]("app", "l").Append("2"), store.NewValue[string]("app", "gone").Delete()},
	}
	for name, last := range lastCommits {
		t.Run(name, func(t *testing.T) {
			path := fresh(t)
			b := open(t, path)
			commit(t, b, user("e1", "", "one"), store.SessionName().Set("before"))
			commit(t, b, store.NewValue[string]("app", "gone").Set("x"))
			good, before := read(t, path), records(t, b)
			commit(t, b, last...)
			after := records(t, b)
			closeStore(t, b)
			whole := read(t, path)

			for cut := len(good); cut <= len(whole); cut++ {
				content := whole[:cut]
				write(t, path, content)
				want := before
				if cut >= len(whole)-1 { // only the newline is missing, or nothing
					want = after
				}
				v := view(t, path)
				same(t, "records of the view", records(t, v), want)
				closeStore(t, v)
				if got := read(t, path); string(got) != string(content) {
					t.Fatalf("cut at %d: the view changed the file", cut)
				}

				b := open(t, path)
				same(t, "records of the owner", records(t, b), want)
				if got := read(t, path); string(got) != string(content) {
					t.Fatalf("cut at %d: opening changed the file", cut)
				}
				commit(t, b, store.SessionName().Set("after"))
				want = records(t, b)
				closeStore(t, b)
				if n := soundLines(t, path); n != strings.Count(string(good), "\n")+1 && cut < len(whole)-1 {
					t.Fatalf("cut at %d: %d lines", cut, n)
				}
				b = open(t, path)
				same(t, "records after reopen", records(t, b), want)
				closeStore(t, b)
				if t.Failed() {
					t.Fatalf("cut at %d of %d", cut, len(whole))
				}
			}
		})
	}
}

func TestB03Tails(t *testing.T) {
	const line = `{"kind":"value","op":"set","seq":1,"namespace":"app","key":"k","value":"1"}`
	tests := []struct {
		name, tail string
		kept       int // values that survive, -1: corrupt
	}{
		{"nothing", "", 0},
		{"complete line", line + "\n", 1},
		{"complete line without its newline", line, 1},
		{"complete array without its newline", "[" + line + "]", 1},
		{"complete line and spaces", line + "  ", 1},
		{"half a record", `{"kind":"value","op":"se`, 0},
		{"zeroes", "\x00\x00\x00\x00", 0},
		{"spaces", "   ", 0},
		{"lone CR", "\r", 0},
		{"half a character", line + "\n" + `{"kind":"value","op":"set","seq":2,"namespace":"` + "\xe4", 1},
		{"half a record and a newline", `{"kind":"value","op":"se` + "\n", -1},
		{"half a record and two newlines", `{"kind":"value","op":"se` + "\n\n", -1},
		{"half a record and CRLF", `{"kind":"value","op":"se` + "\r\n", -1},
		{"blank line", line + "\n\n", -1},
		{"blank line with CR", line + "\n\r\n", -1},
		{"a whole record that does not fit", line + "\n" + line, -1},
		{"no record", `{}`, -1},
		{"a number", `12`, -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := file(t, headerLine+tt.tail)
			v, viewErr := jsonl.Driver{}.View(t.Context(), path)
			b, openErr := jsonl.Driver{}.Open(t.Context(), path, options())
			if tt.kept < 0 {
				var corrupt *store.Corrupt
				if !errors.As(viewErr, &corrupt) || !errors.As(openErr, &corrupt) {
					t.Fatalf("view: %v, open: %v; want both *Corrupt", viewErr, openErr)
				}
				if got := string(read(t, path)); got != headerLine+tt.tail {
					t.Fatalf("the file became %q", got)
				}
				return
			}
			if viewErr != nil || openErr != nil {
				t.Fatalf("view: %v, open: %v", viewErr, openErr)
			}
			defer v.Close()
			defer b.Close()
			same(t, "records seen", len(records(t, v)), tt.kept)
			same(t, "records owned", len(records(t, b)), tt.kept)
			commit(t, b, store.SessionName().Set("x"))
			closeStore(t, b)
			if n := soundLines(t, path); n != 1+tt.kept+1 {
				t.Errorf("%d lines", n)
			}
		})
	}
}

// A header without a newline is a session without commits.
func TestHeaderWithoutNewline(t *testing.T) {
	path := file(t, strings.TrimSuffix(headerLine, "\n"))
	b := open(t, path)
	commit(t, b, store.SessionName().Set("x"))
	closeStore(t, b)
	if n := soundLines(t, path); n != 2 {
		t.Errorf("%d lines", n)
	}
	same(t, "records", len(records(t, open(t, path))), 1)
}

// A torn tail is told, by line and byte, and is no damage: to a reader as long as
// nobody owns the session, to its owner until the first commit cuts it off.
func TestTornTailIsTold(t *testing.T) {
	path := fresh(t)
	b := open(t, path)
	commit(t, b, user("e1", "", "one"))
	closeStore(t, b)
	whole := read(t, path)
	findings := func(r store.Reader) []store.Problem { return slices.Collect(r.(store.Checker).Problems(t.Context())) }
	sight := func() []store.Problem {
		v := view(t, path)
		defer closeStore(t, v)
		return findings(v)
	}

	var none []store.Problem
	same(t, "whole", sight(), none)
	write(t, path, whole[:len(whole)-1])
	same(t, "only the newline is missing", sight(), none)
	const tail = `{"kind":"value","op":"set","se`
	write(t, path, append(whole, tail...))
	want := []store.Problem{{
		Code: "torn_tail", Severity: store.SeverityWarning,
		Message: "the last 30 bytes are the beginning of a commit that was not finished; the next writer cuts them off",
		Where:   fmt.Sprintf("line %d, byte %d", strings.Count(string(whole), "\n")+1, len(whole)),
	}}
	same(t, "torn", sight(), want)

	stale := view(t, path)
	b = open(t, path)
	same(t, "to its owner", findings(b), want)
	same(t, "beside an owner", sight(), none)
	commit(t, b, store.SessionName().Set("after"))
	same(t, "after a commit", findings(b), none)
	closeStore(t, b)
	same(t, "to a reader of what was", findings(stale), none)
	closeStore(t, stale)
	same(t, "cut off", sight(), none)
}
