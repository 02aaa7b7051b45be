package jsonl_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
)

// TestBuildRefusesWhatBreaksALine: a damaged session of another encoding can hold
// payloads that no line can; it is named, and no file is written.
func TestBuildRefusesWhatBreaksALine(t *testing.T) {
	entry := func(payload string) store.Record {
		return store.Record{Kind: store.KindEntry, Seq: 1, Entry: &store.Entry{
			Structure: store.Structure{ID: "e1", Seq: 1, Type: "message"}, Payload: json.RawMessage(payload)}}
	}
	usage := func(usage, details string) store.Record {
		u := store.UsageRow{ID: "u1", Seq: 1, Usage: json.RawMessage(usage)}
		if details != "none" {
			u.Details = json.RawMessage(details)
		}
		return store.Record{Kind: store.KindUsage, Seq: 1, Usage: &u}
	}
	value := func(raw string) store.Record {
		return store.Record{Kind: store.KindValue, Op: store.OpSet, Seq: 1, Address: store.Address{Namespace: "n", Key: "k"}, Value: json.RawMessage(raw)}
	}
	for _, c := range []struct {
		record store.Record
		want   string // "" when it can be written
	}{
		{entry(`{}`), ""},
		{entry(``), "entry e1: its payload is empty"},
		{entry(`{`), "entry e1: its payload is no JSON object"},
		{entry(`[1]`), "entry e1: its payload is no JSON object"},
		{entry(` {"a":1}`), "entry e1: its payload is no JSON object"},
		{entry("{\n}"), "entry e1: its payload is not on one line"},
		{usage(`{}`, "none"), ""},
		{usage(`{}`, `1`), ""},
		{usage(``, "none"), "usage u1: its usage is empty"},
		{usage(`null`, "none"), "usage u1: its usage is no JSON object"},
		{usage(`{}`, ``), "usage u1: its text of details is empty"},
		{usage(`{}`, "[\n]"), "usage u1: its text of details is not on one line"},
		{value(`1`), ""},
		{value(``), "n/k: its value is empty"},
		{value("\"a\n\""), "n/k: its value is not on one line"},
	} {
		var out bytes.Buffer
		err := jsonl.Driver{}.Write(t.Context(), &out, store.NewSnapshot(store.Header{ID: "s"}, []store.Record{c.record}))
		var corrupt *store.Corrupt
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%+v: %v", c.record, err)
		case c.want != "" && (!errors.As(err, &corrupt) || err.Error() != c.want):
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}
