package jsonl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/memory"
)

type badLine struct{ fault }

func (e badLine) Error() string { return e.msg }

// replayed decodes one line into a fresh state and returns its live records.
func replayed(line []byte) ([]store.Record, error) { return replayedBy(newDecoder(false), line) }

func replayedBy(d *decoder, line []byte) ([]store.Record, error) {
	src := source{bytes.NewReader(line)}
	p := newReplay(memory.NewState(store.Header{}, src), "")
	bad := d.line(bytes.TrimSuffix(line, []byte("\n")), 0, 0)
	for i := range d.items {
		if err := p.item(&d.items[i]); err != nil {
			return nil, badLine{fault{d.items[i].at, err.Error()}}
		}
	}
	if bad != nil {
		return nil, badLine{*bad}
	}
	snap, err := p.state.Snapshot(context.Background())
	if err != nil {
		return nil, err
	}
	return store.Collect(snap)
}

// Text that is hard on an encoder: quotes, controls, surrogates (as WTF-8),
// line separators, and the words of the format itself.
var texts = rapid.OneOf(
	rapid.String(),
	rapid.SampledFrom([]string{
		"", "a", `"`, `\`, "\n", "\x00\x1f", "\u2028\u2029\u0085", "😀", "\xed\xa0\xbd", "\xed\xb8\x80x", "\ufeff",
		`","kind":"entry`, "null", "pi.lane.leaf", "018bcfe5-6800-7000-8000-000000000000", "<&>",
	}),
)

// Values with everything that a decoder may not touch.
var values = rapid.SampledFrom([]string{
	`null`, `true`, `-0`, `1E400`, `123456789012345678901234567890`, `0.10`, `""`, `"\ud83d"`, `"\uDE00\u00e9\/"`, `"😀"`,
	`[]`, `{}`, `{"z":1,"a":[{}],"z":2}`, `{"kind":"entry","seq":1}`, `[[[[[[[[[[]]]]]]]]]]`, `"}{][,:"`, "\"\u2028\x7f\"",
	`{"\u0069d":"x"}`,
})

var members = rapid.SampledFrom([]string{
	`"message":{"role":"user","content":"x"}`, `"data":null`, `"summary":"s","retainedTail":[]`, `"id":"not the id"`,
	`"seq":-1`, `"kind":"usage"`, `"a":1,"a":2`, `"customType":"payload"`, `"\u0074ype":"x"`, `"":"\ud83d"`,
})

func payload(t *rapid.T) json.RawMessage {
	parts := rapid.SliceOfN(members, 0, 3).Draw(t, "members")
	out := []byte{'{'}
	for i, p := range parts {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, p...)
	}
	return append(out, '}')
}

// record draws a surviving record of any kind.
func record(t *rapid.T, seq int64) store.Record {
	r := store.Record{Seq: seq}
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		r.Kind, r.Op, r.Value = store.KindValue, store.OpSet, json.RawMessage(values.Draw(t, "value"))
		r.Address = store.Address{Namespace: fmt.Sprint("n", seq, texts.Draw(t, "namespace")), Key: texts.Draw(t, "key")}
	case 1:
		r.Kind, r.Op, r.Value = store.KindList, store.OpAppend, json.RawMessage(values.Draw(t, "value"))
		r.Address = store.Address{Namespace: "n" + texts.Draw(t, "namespace"), Key: texts.Draw(t, "key")}
	case 2:
		u := &store.UsageRow{
			ID: fmt.Sprint("u", seq, texts.Draw(t, "id")), Seq: seq, EntryID: texts.Draw(t, "entry"),
			Adjustment: rapid.Bool().Draw(t, "adjustment"), Usage: payload(t),
		}
		if rapid.Bool().Draw(t, "has details") {
			u.Details = json.RawMessage(values.Draw(t, "details"))
		}
		r.Kind, r.Usage = store.KindUsage, u
	case 3:
		e := &store.Entry{Structure: store.Structure{
			ID: fmt.Sprint("e", seq, texts.Draw(t, "id")), Seq: seq, Timestamp: rapid.Int64().Draw(t, "timestamp"),
			Type: rapid.SampledFrom([]store.EntryType{"message", "compaction", "branch_summary", "custom", "novel"}).Draw(t, "type"),
		}, Payload: payload(t)}
		if e.Type == store.TypeCustom {
			e.CustomType = "c" + texts.Draw(t, "custom type")
		}
		r.Kind, r.Entry = store.KindEntry, e
	}
	return r
}

func TestCodecRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want []store.Record
		seq := int64(0)
		for range rapid.IntRange(1, 6).Draw(t, "records") {
			seq += rapid.Int64Range(1, 1<<40).Draw(t, "gap")
			r := record(t, seq)
			if e := r.Entry; e != nil && len(want) > 0 && want[len(want)-1].Entry != nil {
				e.ParentID = want[len(want)-1].Entry.ID
			}
			want = append(want, r)
		}
		line := appendLine(nil, want, make([]memory.Place, len(want)), make([]int64, len(want)))
		if bytes.Count(line, []byte("\n")) != 1 || !json.Valid(line) {
			t.Fatalf("not one JSON line: %q", line)
		}
		got, err := replayed(line)
		if err != nil {
			t.Fatalf("decode %s: %v", line, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s\n(-want +got):\n%s", line, diff)
		}
	})
}

// slowly decodes a one-object line by the slow path alone.
func slowly(line []byte) ([]store.Record, error) {
	p := newReplay(memory.NewState(store.Header{}, source{bytes.NewReader(line)}), "")
	d := newDecoder(false)
	it := d.push()
	if _, bad := d.slow(line, 0); bad != nil {
		return nil, badLine{*bad}
	}
	if err := p.item(it); err != nil {
		return nil, err
	}
	snap, err := p.state.Snapshot(context.Background())
	if err != nil {
		return nil, err
	}
	return store.Collect(snap)
}

func FuzzDecode(f *testing.F) {
	for _, line := range []string{
		`{"kind":"entry","seq":1,"timestamp":2,"id":"a","parentId":null,"type":"message","message":{}}`,
		`{"kind":"entry","seq":1,"timestamp":2,"id":"a","parentId":null,"type":"custom","customType":"c"}`,
		`{"kind":"usage","seq":1,"id":"u","entryId":"e","adjustment":false,"usage":{},"details":null}`,
		`{"kind":"value","op":"set","seq":1,"namespace":"n","key":"","value":[1, 2]}`,
		`{"kind":"list","op":"append","seq":1,"namespace":"n","key":"k","value":"\ud83d","x":1}`,
		`{"kind":"value","op":"delete","seq":1,"namespace":"n","key":"k"}`,
		`{"type":"message","id":"a","message" : {} ,"kind":"entry","parentId":null,"seq":9,"timestamp":0, "id":"b"}`,
		`[{"kind":"value","op":"delete","seq":1,"namespace":"n","key":"k"},{"kind":"list","op":"delete","seq":2,"namespace":"n","key":"k"}]`,
		`{"kind":"entry","seq":01,"timestamp":2,"id":"a\u0062","parentId":"p","type":"custom","customType":1}`,
		`{"kind":"value","op":"set","seq":1,"namespace":"` + "\x87" + `","key":"","value":[]}`,
		`{"key":"\ud800","kind":"list","op":"append","seq":1,"namespace":"é","value":"` + "\xff" + `"}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.IndexByte(line, '\n') >= 0 {
			return
		}
		first, err := replayed(line)
		judged, judgedErr := replayedBy(newDecoder(true), line)
		if diff := cmp.Diff(first, judged); diff != "" || fmt.Sprint(err) != fmt.Sprint(judgedErr) {
			t.Fatalf("%q when it is judged: %v, not %v (-any +judged):\n%s", line, judgedErr, err, diff)
		}
		if err != nil {
			var bad badLine
			if !errors.As(err, &bad) || bad.at < 0 || bad.at > len(line) {
				t.Fatalf("%v at %d of %d bytes", err, bad.at, len(line))
			}
			return
		}
		if !json.Valid(line) {
			t.Fatalf("accepted what is not JSON: %q", line)
		}
		// Both paths see the same record.
		if i := skipSpace(line, 0); line[i] == '{' {
			other, err := slowly(append(bytes.TrimSpace(line), '\n'))
			if err != nil {
				t.Fatalf("the slow path refuses %q: %v", line, err)
			}
			if diff := cmp.Diff(first, other); diff != "" {
				t.Fatalf("%q by the slow path (-fast +slow):\n%s", line, diff)
			}
		}
		if len(first) == 0 {
			return
		}
		// What was decoded is written in a form that decodes to the same.
		again := appendLine(nil, first, make([]memory.Place, len(first)), make([]int64, len(first)))
		second, err := replayed(again)
		if err != nil {
			t.Fatalf("decode %q of %q: %v", again, line, err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("%q (-first +second):\n%s", line, diff)
		}
	})
}

// The layout is spec §1.7's, byte for byte.
func TestEncodedLines(t *testing.T) {
	entry := func(e store.Entry) store.Record { return store.Record{Kind: store.KindEntry, Seq: e.Seq, Entry: &e} }
	value := func(op store.WriteOp, raw string) store.Record {
		return store.Record{Kind: store.KindValue, Op: op, Seq: 5, Address: store.Address{Namespace: "n", Key: "k"}, Value: json.RawMessage(raw)}
	}
	list := func(op store.WriteOp, raw string) store.Record {
		r := value(op, raw)
		r.Kind = store.KindList
		return r
	}
	tests := []struct {
		name    string
		records []store.Record
		want    string
	}{
		{"message", []store.Record{entry(store.Entry{Structure: store.Structure{ID: "e", ParentID: "p", Seq: 101, Timestamp: 17, Type: "message"}, Payload: json.RawMessage(`{"message":{"role":"user"},"terminate":true}`)})},
			`{"kind":"entry","seq":101,"timestamp":17,"id":"e","parentId":"p","type":"message","message":{"role":"user"},"terminate":true}`},
		{"root custom entry without data", []store.Record{entry(store.Entry{Structure: store.Structure{ID: "e", Seq: 1, Timestamp: -1, Type: "custom", CustomType: "a.b"}, Payload: json.RawMessage(`{}`)})},
			`{"kind":"entry","seq":1,"timestamp":-1,"id":"e","parentId":null,"type":"custom","customType":"a.b"}`},
		{"usage", []store.Record{{Kind: store.KindUsage, Seq: 3, Usage: &store.UsageRow{ID: "u", Seq: 3, EntryID: "e", Usage: json.RawMessage(`{"input":1}`)}}},
			`{"kind":"usage","seq":3,"id":"u","entryId":"e","adjustment":false,"usage":{"input":1}}`},
		{"adjustment", []store.Record{{Kind: store.KindUsage, Seq: 3, Usage: &store.UsageRow{ID: "u", Seq: 3, Adjustment: true, Usage: json.RawMessage(`{}`), Details: json.RawMessage(`null`)}}},
			`{"kind":"usage","seq":3,"id":"u","adjustment":true,"usage":{},"details":null}`},
		{"set", []store.Record{value(store.OpSet, `null`)}, `{"kind":"value","op":"set","seq":5,"namespace":"n","key":"k","value":null}`},
		{"delete", []store.Record{value(store.OpDelete, "")}, `{"kind":"value","op":"delete","seq":5,"namespace":"n","key":"k"}`},
		{"append", []store.Record{list(store.OpAppend, `1`)}, `{"kind":"list","op":"append","seq":5,"namespace":"n","key":"k","value":1}`},
		{"delete list", []store.Record{list(store.OpDelete, "")}, `{"kind":"list","op":"delete","seq":5,"namespace":"n","key":"k"}`},
		{"several", []store.Record{value(store.OpSet, `1`), list(store.OpDelete, "")},
			`[{"kind":"value","op":"set","seq":5,"namespace":"n","key":"k","value":1},{"kind":"list","op":"delete","seq":5,"namespace":"n","key":"k"}]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := appendLine(nil, tt.records, make([]memory.Place, len(tt.records)), make([]int64, len(tt.records)))
			if diff := cmp.Diff(tt.want+"\n", string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLineReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var content []byte
		for range rapid.IntRange(0, 12).Draw(t, "lines") {
			content = append(content, bytes.Repeat([]byte{'x'}, rapid.IntRange(0, 40).Draw(t, "length"))...)
			content = append(content, '\n')
		}
		content = append(content, rapid.SampledFrom([]string{"", "tail"}).Draw(t, "tail")...)
		start := rapid.IntRange(0, len(content)).Draw(t, "start")
		end := rapid.IntRange(start, len(content)).Draw(t, "end")
		r := newLineReader(bytes.NewReader(content), int64(start), int64(end), rapid.IntRange(1, 16).Draw(t, "buffer"))
		at := start
		for {
			line, offset, whole, err := r.next()
			if err != nil {
				break
			}
			want, _, newline := bytes.Cut(content[at:end], []byte("\n"))
			if offset != int64(at) || whole != newline || !bytes.Equal(line, want) {
				t.Fatalf("line at %d: %q at %d, whole %v; want %q, %v", at, line, offset, whole, want, newline)
			}
			if at += len(want); whole {
				at++
			}
		}
		if at != end {
			t.Fatalf("stopped at %d of %d", at, end)
		}
	})
}

func TestSourceReadsSpansInAnyOrder(t *testing.T) {
	content := make([]byte, 1<<20)
	for i := range content {
		content[i] = byte('a' + i%26)
	}
	rapid.Check(t, func(t *rapid.T) {
		var spans []memory.Span
		var want []json.RawMessage
		for range rapid.IntRange(0, 20).Draw(t, "spans") {
			off := rapid.IntRange(0, len(content)-1).Draw(t, "offset")
			n := rapid.IntRange(1, min(len(content)-off, 300_000)).Draw(t, "length")
			spans = append(spans, memory.Span{Off: int64(off), Len: int64(n)})
			want = append(want, content[off:off+n])
		}
		got, err := source{bytes.NewReader(content)}.Values(spans)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("span %d: %v", i, spans[i])
			}
		}
	})
}
