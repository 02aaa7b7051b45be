package jsonl_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
)

// Every kind of damage is refused by name, with the line and the byte where it
// is; the mark § stands for that byte and is not part of the file (spec §1.7,
// D8, D15).
func TestCorruption(t *testing.T) {
	const (
		entry = `{"kind":"entry","seq":1,"timestamp":1,"id":"e1","parentId":null,"type":"message","message":{}}` + "\n"
		value = `{"kind":"value","op":"set","seq":2,"namespace":"n","key":"k","value":1}` + "\n"
		usage = `{"kind":"usage","seq":2,"id":"u1","adjustment":false,"usage":{}}` + "\n"
	)
	tests := []struct {
		name, content string
		line          int64
		msg           string
	}{
		// headers
		{"empty file", "§", 1, "header is no JSON object"},
		{"text", "§hello\n", 1, "header is no JSON object"},
		{"half a header", `{"v":4,"kind":"header"§`, 1, "header is not valid JSON: unexpected end of text"},
		{"byte order mark", "§\ufeff" + headerLine, 1, "header is no JSON object"},
		{"no kind", `§{"v":4,"id":"s","storageVersion":1,"createdAt":1}` + "\n", 1, `header has no "kind":"header"`},
		{"another format", `§{"v":5,"kind":"header","id":"s","storageVersion":1,"createdAt":1}` + "\n", 1, "header has format 5, not 4"},
		{"no id", `§{"v":4,"kind":"header","storageVersion":1,"createdAt":1}` + "\n", 1, "header has no id"},
		{"no version", `§{"v":4,"kind":"header","id":"s"}` + "\n", 1, "header has no storageVersion"},
		{"a commit in front", "§" + entry, 1, `header has no "kind":"header"`},
		// framing
		{"blank line", headerLine + "§\n" + entry, 2, "line is blank"},
		{"blank line with spaces", headerLine + "§ \t\r\n" + entry, 2, "line is blank"},
		{"text line", headerLine + entry + "§oops\n" + value, 3, "line is no JSON object or array"},
		{"scalar line", headerLine + "§12\n", 2, "line is no JSON object or array"},
		{"binary line", headerLine + "§\x00\x01\n" + entry, 2, "line is no JSON object or array"},
		{"interior half", headerLine + `{"kind":"value","op":"se§` + "\n" + entry, 2, "unexpected end of text"},
		{"last half with newline", headerLine + entry + `{"kind":"entry","seq":2,§` + "\n", 3, "unexpected end of text"},
		{"two commits on a line", headerLine + strings.TrimSuffix(entry, "\n") + "§" + value, 2, "text follows the commit"},
		{"fused with a torn one", headerLine + `{"kind":"value","op":"se{"§kind":"x"}` + "\n", 2, "expected a comma or the end of the object"},
		{"bad escape", headerLine + `{"kind":"value","op":"set","seq":1,"namespace":"n","key":"k","value":"§\x"}` + "\n", 2, "invalid escape in a string"},
		{"empty commit", headerLine + "[§]\n", 2, "commit is empty"},
		{"array of scalars", headerLine + "[§1]\n", 2, "element of the commit is no JSON object"},
		{"array of arrays", headerLine + "[§[]]\n", 2, "element of the commit is no JSON object"},
		{"trailing comma", headerLine + "[" + strings.TrimSuffix(entry, "\n") + ",§]\n", 2, "element of the commit is no JSON object"},
		{"open array", headerLine + "[" + strings.TrimSuffix(entry, "\n") + "§\n", 2, "expected a comma or the end of the commit"},
		// records
		{"unknown kind", headerLine + `§{"kind":"novel","seq":1}` + "\n", 2, `record has the unknown kind "novel"`},
		{"no kind", headerLine + `§{"seq":1}` + "\n", 2, "record has no kind"},
		{"unknown operation", headerLine + `§{"kind":"value","op":"append","seq":1,"namespace":"n","key":"k","value":1}` + "\n", 2, `record has the unknown operation "append"`},
		{"list set", headerLine + `§{"kind":"list","op":"set","seq":1,"namespace":"n","key":"k","value":1}` + "\n", 2, `record has the unknown operation "set"`},
		{"no seq", headerLine + `§{"kind":"value","op":"delete","namespace":"n","key":"k"}` + "\n", 2, "record has no seq"},
		{"fractional seq", headerLine + `§{"kind":"value","op":"delete","seq":1.5,"namespace":"n","key":"k"}` + "\n", 2, "seq is no integer"},
		{"huge seq", headerLine + `§{"kind":"value","op":"delete","seq":99999999999999999999,"namespace":"n","key":"k"}` + "\n", 2, "seq is no integer"},
		{"text seq", headerLine + `§{"kind":"value","op":"delete","seq":"1","namespace":"n","key":"k"}` + "\n", 2, "seq is no integer"},
		{"empty namespace", headerLine + `§{"kind":"value","op":"delete","seq":1,"namespace":"","key":"k"}` + "\n", 2, "namespace is empty"},
		{"a namespace that is not UTF-8", headerLine + `§{"kind":"value","op":"set","seq":1,"namespace":"` + "\x87" + `","key":"","value":[]}` + "\n", 2, "namespace is not UTF-8"},
		{"an id that is not UTF-8", headerLine + "§" + strings.Replace(entry, "e1", "\xff", 1), 2, "id is not UTF-8"},
		{"no key", headerLine + `§{"kind":"value","op":"delete","seq":1,"namespace":"n"}` + "\n", 2, "record has no key"},
		{"set without value", headerLine + `§{"kind":"value","op":"set","seq":1,"namespace":"n","key":"k"}` + "\n", 2, "record has no value"},
		{"no entry id", headerLine + `§{"kind":"entry","seq":1,"timestamp":1,"parentId":null,"type":"message"}` + "\n", 2, "record has no id"},
		{"no parent", headerLine + `§{"kind":"entry","seq":1,"timestamp":1,"id":"e","type":"message"}` + "\n", 2, "record has no parentId"},
		{"empty type", headerLine + `§{"kind":"entry","seq":1,"timestamp":1,"id":"e","parentId":null,"type":""}` + "\n", 2, "type is empty"},
		{"text timestamp", headerLine + `§{"kind":"entry","seq":1,"timestamp":"now","id":"e","parentId":null,"type":"message"}` + "\n", 2, "timestamp is no integer"},
		{"usage without adjustment", headerLine + `§{"kind":"usage","seq":1,"id":"u","usage":{}}` + "\n", 2, "record has no adjustment"},
		{"usage is no object", headerLine + `§{"kind":"usage","seq":1,"id":"u","adjustment":true,"usage":[]}` + "\n", 2, "usage is no object"},
		// order and references
		{"seq zero", headerLine + `§{"kind":"value","op":"delete","seq":0,"namespace":"n","key":"k"}` + "\n", 2, "sequence number 0 follows 0"},
		{"the last seq there is", headerLine + `§{"kind":"value","op":"delete","seq":9223372036854775807,"namespace":"n","key":"k"}` + "\n", 2, "no sequence number can follow 9223372036854775807"},
		{"seq repeats", headerLine + entry + value + "§" + usage, 4, "sequence number 2 follows 2"},
		{"seq falls inside a commit", headerLine + "[" + strings.TrimSuffix(value, "\n") + ",§" + strings.TrimSuffix(entry, "\n") + "]\n", 2, "sequence number 1 follows 2"},
		{"id twice", headerLine + entry + "§" + strings.Replace(entry, `"seq":1`, `"seq":2`, 1), 3, "id e1 is used twice"},
		{"id of a row", headerLine + entry + "§" + strings.Replace(usage, `"u1"`, `"e1"`, 1), 3, "id e1 is used twice"},
		{"missing parent", headerLine + "§" + strings.Replace(entry, "null", `"e0"`, 1), 2, "entry e1: parent e0 is no earlier entry"},
		{"later parent", headerLine + "[§" + strings.TrimSuffix(strings.Replace(entry, "null", `"e2"`, 1), "\n") +
			`,{"kind":"entry","seq":2,"timestamp":1,"id":"e2","parentId":null,"type":"message","message":{}}]` + "\n", 2, "entry e1: parent e2 is no earlier entry"},
		// far into the file
		{"line 1002", headerLine + manyValues(1000) + "\n§\n" + "x", 1002, "line is blank"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before, after, _ := strings.Cut(tt.content, "§")
			path := file(t, before+after)
			want := &store.Corrupt{Path: path, Line: tt.line, Offset: int64(len(before)), Msg: tt.msg}
			for call, err := range opens(t, path) {
				var got *store.Corrupt
				if !errors.As(err, &got) {
					t.Fatalf("%s: got %v, want *Corrupt", call, err)
				}
				same(t, call, got, want)
			}
			same(t, "file", string(read(t, path)), before+after)
		})
	}
}

func manyValues(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"kind":"value","op":"set","seq":%d,"namespace":"n","key":"k","value":%d}`+"\n", i+1, i)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// opens tries every way to open a file.
func opens(t *testing.T, path string) map[string]error {
	t.Helper()
	b, openErr := jsonl.Driver{}.Open(t.Context(), path, options())
	if openErr == nil {
		closeStore(t, b)
	}
	v, viewErr := jsonl.Driver{}.View(t.Context(), path)
	if viewErr == nil {
		closeStore(t, v)
	}
	return map[string]error{"open": openErr, "view": viewErr}
}

func TestNewerVersion(t *testing.T) {
	path := file(t, strings.Replace(headerLine, `"storageVersion":1`, `"storageVersion":3`, 1)+"what this binary cannot read\n")
	for call, err := range opens(t, path) {
		var newer *store.NewerVersion
		if !errors.As(err, &newer) || newer.Found != 3 || newer.Supported != store.StorageVersion {
			t.Errorf("%s: %v", call, err)
		}
	}
}

func TestLegacyFile(t *testing.T) {
	content := `{"type":"session","version":3,"id":"11111111-1111-4111-8111-111111111111","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/"}` + "\n" +
		`{"type":"message","id":"a1","parentId":null,"timestamp":"2025-01-01T00:00:01.000Z","message":{"role":"user","content":"hi","timestamp":1}}` + "\n"
	path := file(t, content)
	var legacy *store.Legacy
	if _, err := (jsonl.Driver{}).Open(t.Context(), path, options()); !errors.As(err, &legacy) || legacy.Path != path {
		t.Errorf("open: %v", err)
	}
	if _, err := (jsonl.Driver{}).Header(t.Context(), path); !errors.As(err, &legacy) {
		t.Errorf("header: %v", err)
	}
	entries, err := view(t, path).ScanEntries(t.Context(), store.EntryQuery{})
	if err != nil || len(entries) != 1 || entries[0].Message().Text() != "hi" {
		t.Errorf("view: %v, %v", entries, err)
	}
	same(t, "file", string(read(t, path)), content)
}

// Members in another order and spelling than ours, and members we do not know
// (spec §1.7; D5).
func TestForeignLines(t *testing.T) {
	content := headerLine +
		`{"message":{"b":1,"a":[ 1 ]},"type":"message","parentId":null,"id":"\u00651","novel":true,"timestamp":5,"seq":1,"kind":"entry"}` + "\n" +
		` [ {"kind":"entry","seq":2,"id":"e2","parentId":"e1","timestamp":4,"type":"custom","data":"\ud83d","customType":"c","data":1e999} ,` +
		`{"value":{"z" : 1},"key":"k","namespace":"n","seq":4,"op":"set","kind":"value","unknown":[]}] ` + "\r\n" +
		`{"kind":"usage","seq":6,"id":"u","entryId":null,"adjustment":true,"usage":{"input":2},"who":"x"}` + "\n"
	path := file(t, content)
	want := []store.Record{
		{Kind: store.KindEntry, Seq: 1, Entry: &store.Entry{
			Structure: store.Structure{ID: "e1", Seq: 1, Timestamp: 5, Type: store.TypeMessage},
			Payload:   raw(`{"message":{"b":1,"a":[ 1 ]},"novel":true}`),
		}},
		{Kind: store.KindEntry, Seq: 2, Entry: &store.Entry{
			Structure: store.Structure{ID: "e2", ParentID: "e1", Seq: 2, Timestamp: 4, Type: store.TypeCustom, CustomType: "c"},
			Payload:   raw(`{"data":"\ud83d","data":1e999}`),
		}},
		{Kind: store.KindValue, Op: store.OpSet, Seq: 4, Address: store.Address{Namespace: "n", Key: "k"}, Value: raw(`{"z" : 1}`)},
		{Kind: store.KindUsage, Seq: 6, Usage: &store.UsageRow{ID: "u", Seq: 6, Adjustment: true, Usage: raw(`{"input":2}`)}},
	}
	v := view(t, path)
	same(t, "records", records(t, v), want)
	stats, err := v.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "stats", stats, store.Stats{MessageCount: 1, Usage: message.Usage{Input: 2}})
	b := open(t, path)
	same(t, "next commit", commit(t, b, user("e3", "e2", "x")), store.CommitResult{
		FirstSeq: 7, Seqs: []int64{7}, Timestamp: now, Stats: store.Stats{MessageCount: 2, Usage: message.Usage{Input: 2}},
	})
}

// Entries that break the rules of their type open all the same: verify reports
// them (bug B05, spec §0.8).
func TestB05ShapesAreNotJudgedOnOpen(t *testing.T) {
	path := file(t, headerLine+
		`{"kind":"entry","seq":1,"timestamp":1,"id":"a","parentId":null,"type":"message","message":{"0":"{"}}`+"\n"+
		`{"kind":"entry","seq":2,"timestamp":1,"id":"b","parentId":"a","type":"custom","data":1}`+"\n"+
		`{"kind":"entry","seq":3,"timestamp":1,"id":"c","parentId":"b","type":"message","customType":"odd"}`+"\n")
	entries, err := view(t, path).ScanEntries(t.Context(), store.EntryQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var payloads []string
	for _, e := range entries {
		payloads = append(payloads, string(e.Payload))
	}
	same(t, "payloads", payloads, []string{`{"message":{"0":"{"}}`, `{"data":1}`, `{"customType":"odd"}`})
}
