package jsonl

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-run/drover/pkg/store"
)

// entryTexts are what an entry's line may say after its structural fields, sound,
// odd and broken.
var entryTexts = []string{
	``, `,"message":{"role":"user","content":"a"}`, `,"message":{"role":"user","content":[{"type":"text","text":"é"}]},"terminate":true`,
	`,"message":{"role":"user","content":" "}`, `,"message":{"role":"robot","content":"a"}`, `,"message":{"role":7}`, `,"message":7`,
	`,"message":{"role":"user","content":"` + "\xff" + `"}`, `,"message":{"role":"user","content":"a"},"x":"` + "\xc3" + `"`, `,"data":"` + "\xff" + `"`,
	`,"message": {"role":"user","content":"a"}`, `,"message":{"role":"user", "content":"a"}`, `,"message":{"role":"user","content":"a"},"x": 1`,
	`,"\u006dessage":{"role":"user","content":"a"}`, `,"message":{"role":"user","content":"a"},"message":{"role":"user","content":"b"}`,
	`,"message":{"role":"user","content":"a"},"seq":9`, `,"message":{"role":"user","content":"\ud83d"}`,
	`,"message":{"role":"assistant","content":[],"stopReason":"pending"}`, `,"message":{"role":"assistant","content":[],"stopReason":"stop","usage":{"input":"x"}}`,
	`,"message":{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"n","arguments":{}}],"stopReason":"toolUse","usage":{"input":1}}`,
	`,"message":{"role":"toolResult","toolCallId":"c1","toolName":"n","isError":false,"content":[]}`,
	`,"message":{"role":"toolResult","toolCallId":"c2","toolName":"n","isError":false,"content":[]}`,
	`,"summary":"s","retainedTail":[],"tokensBefore":1,"fromHook":false`, `,"summary":7`, `,"data":{"a":[1,2]}`, `,"data": 1`,
}

// line is an entry, or a row of the ledger, that follows those before it.
func drawLine(t *rapid.T, i int) string {
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 1:
		return fmt.Sprintf(`{"kind":"value","op":"set","seq":%d,"namespace":"n","key":"k%d","value":{"i":%d}}`, i+10, i, i)
	case 0:
		return fmt.Sprintf(`{"kind":"usage","seq":%d,"id":"u%d","entryId":%q,"adjustment":false,"usage":%s}`, i+10, i,
			rapid.SampledFrom([]string{"e0", "e1", "gone"}).Draw(t, "entry"), rapid.SampledFrom([]string{
				`{}`, `{"input":1}`, `{"input":"x"}`, `{"input":1e400}`, `{"x":"` + "\xff" + `"}`, `{"input":1},"details":{}`, `{"input":1},"details":"` + "\xff" + `"`, `{"input": 2}`,
			}).Draw(t, "usage"))
	}
	kind := rapid.SampledFrom([]string{`"message"`, `"message"`, `"message"`, `"custom","customType":"c"`, `"custom"`, `"compaction"`, `"novel"`, `"message","customType":"c"`}).Draw(t, "type")
	parent := "null"
	if i > 0 {
		parent = fmt.Sprintf(`"e%d"`, rapid.SampledFrom([]int{0, 0, i - 1}).Draw(t, "parent"))
	}
	return fmt.Sprintf(`{"kind":"entry","seq":%d,"timestamp":2,"id":"e%d","parentId":%s,"type":%s%s}`, i+10, i, parent, kind,
		rapid.SampledFrom(entryTexts).Draw(t, "text"))
}

// said is what a view lets a check find, and what it holds.
type said struct {
	Problems []store.Problem
	Counts   store.Counts
	Records  []store.Record
	Stats    store.Stats
	Err      string
}

func sayings(t *rapid.T, path string, view func(context.Context, string) (store.Reader, error)) (s said) {
	ctx := context.Background()
	r, err := view(ctx, path)
	if err != nil {
		return said{Err: err.Error()}
	}
	defer r.Close()
	var v store.Verification
	for p := range v.Problems(ctx, r) {
		s.Problems = append(s.Problems, p)
	}
	s.Counts = v.Counts
	snap, err := r.Snapshot(ctx)
	if err == nil {
		s.Records, err = store.Collect(snap)
	}
	if err == nil {
		s.Stats, err = r.Stats(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A view that judges while it reads holds what any view holds, and a check finds
// the same in it.
func TestJudgingDoesNotShow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		text.WriteString(oneHeader)
		for i, n := 0, rapid.IntRange(1, 30).Draw(t, "lines"); i < n; i++ {
			text.WriteString(drawLine(t, i) + "\n")
		}
		if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		want := sayings(t, path, Driver{}.View)
		if diff := cmp.Diff(want, sayings(t, path, Driver{}.ViewJudged)); diff != "" {
			t.Fatalf("%s\n(-any view +judged):\n%s", text.String(), diff)
		}
	})
}

// Somebody who looks at the records of a check sees their payloads, whatever was
// judged.
func TestSeenPayloadsAreThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	text := oneHeader + `{"kind":"entry","seq":1,"timestamp":2,"id":"e1","parentId":null,"type":"message"` + entryTexts[1] + "}\n" +
		`{"kind":"usage","seq":2,"id":"u","adjustment":false,"usage":{"input":1}}` + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Driver{}.ViewJudged(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var seen []string
	v := store.Verification{Seen: func(r *store.Record) {
		switch {
		case r.Entry != nil:
			seen = append(seen, string(r.Entry.Payload))
		case r.Usage != nil:
			seen = append(seen, string(r.Usage.Usage))
		}
	}}
	for range v.Problems(t.Context(), r) {
	}
	if diff := cmp.Diff([]string{`{` + entryTexts[1][1:] + `}`, `{"input":1}`}, seen); diff != "" {
		t.Errorf("payloads seen (-want +got):\n%s", diff)
	}
}

// What was judged sound is not read again.
func TestSoundPayloadsAreReadOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	line := func(seq int, rest string) string {
		return fmt.Sprintf(`{"kind":"entry","seq":%d,"timestamp":2,"id":"e%d","parentId":null,"type":%s}`+"\n", seq, seq, rest)
	}
	text := oneHeader + line(1, `"message"`+entryTexts[1]) + line(2, `"message"`+entryTexts[3]) + line(3, `"custom","customType":"c","data":1`) +
		`{"kind":"usage","seq":4,"id":"u","adjustment":false,"usage":{"input":1}}` + "\n" + line(5, `"message"`+entryTexts[19])
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Driver{}.ViewJudged(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	snap, err := r.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[int64]*store.Verdict{}
	for rec, err := range snap.Judged {
		if err != nil {
			t.Fatal(err)
		}
		got[rec.Seq] = rec.Verdict
		if read := rec.Entry != nil && rec.Entry.Payload != nil || rec.Usage != nil && rec.Usage.Usage != nil; read != (rec.Verdict == nil) {
			t.Errorf("record %d: verdict %+v, payload read: %t", rec.Seq, rec.Verdict, read)
		}
	}
	sound := &store.Verdict{Sound: true}
	want := map[int64]*store.Verdict{1: sound, 2: nil, 3: sound, 4: sound, 5: {Sound: true, Calls: []string{"c1"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}
