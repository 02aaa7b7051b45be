package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// The addresses the rules use; raw JSON, so that bytes can be compared.
var (
	valueA = store.NewValue[json.RawMessage]("app.value", "a")
	valueB = store.NewValue[json.RawMessage]("app.value", "b")
	listA  = store.NewList[json.RawMessage]("app.list", "a")
	listB  = store.NewList[json.RawMessage]("app.list", "b")
)

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func userJSON(text string) string {
	return `{"role":"user","content":"` + text + `","timestamp":1}`
}

func userEntry(id, parent, text string) store.Write {
	return store.InsertEntry(store.MessageEntry(id, parent, message.Message(userJSON(text))))
}

func customEntry(id, parent, customType string, data json.RawMessage) store.Write {
	return store.InsertEntry(store.CustomEntry(id, parent, customType, data))
}

const compactionPayload = `{"summary":"s","retainedTail":[],"tokensBefore":9,"fromHook":false}`

func compactionEntry(id, parent string) store.Write {
	return store.InsertEntry(store.NewEntry{
		ID: id, ParentID: parent, Type: store.TypeCompaction, Payload: raw(compactionPayload),
	})
}

func usageWrite(id, entryID string, input int64, cost float64) store.Write {
	return store.InsertUsage(store.NewUsage{ID: id, EntryID: entryID, Usage: usageOf(input, cost)})
}

func usageOf(input int64, cost float64) message.Usage {
	return message.Usage{Input: input, TotalTokens: input, Cost: message.Cost{Input: cost, Total: cost}}
}

func usageJSON(t testing.TB, u message.Usage) json.RawMessage {
	t.Helper()
	b, err := u.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func commit(t testing.TB, b store.Backend, writes ...store.Write) store.CommitResult {
	t.Helper()
	res, err := b.Commit(t.Context(), store.Tx(writes))
	if err != nil {
		t.Fatalf("commit: %v", err)
	}
	return res
}

// refuse wants the transaction refused before anything changed.
func refuse(t testing.TB, b store.Backend, writes ...store.Write) {
	t.Helper()
	before := contents(t, b)
	_, err := b.Commit(t.Context(), store.Tx(writes))
	var invalid *store.InvalidWrite
	if !errors.As(err, &invalid) {
		t.Fatalf("commit: got %v, want an *InvalidWrite", err)
	}
	same(t, "contents after a refused transaction", contents(t, b), before)
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	equal(t, what, got, want)
}

func equal(t interface {
	Helper()
	Fatalf(string, ...any)
}, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, wholeBytes); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// wholeBytes compares payloads at once: cmp would take seconds over megabytes.
var wholeBytes = cmp.Comparer(func(a, b json.RawMessage) bool {
	return (a == nil) == (b == nil) && bytes.Equal(a, b)
})

func entries(t testing.TB, b store.Queries, ids ...string) map[string]store.Entry {
	t.Helper()
	m, err := b.Entries(t.Context(), ids)
	if err != nil {
		t.Fatalf("read entries: %v", err)
	}
	return m
}

func value(t testing.TB, b store.Queries, addr store.Address) (store.StoredValue, bool) {
	t.Helper()
	v, ok, err := b.Value(t.Context(), addr)
	if err != nil {
		t.Fatalf("read %s: %v", addr, err)
	}
	return v, ok
}

func wantValue(t testing.TB, b store.Queries, addr store.Address, seq int64, want string) {
	t.Helper()
	v, ok := value(t, b, addr)
	if !ok {
		t.Fatalf("%s: absent, want %s", addr, want)
	}
	same(t, addr.String(), v, store.StoredValue{Address: addr, Seq: seq, Value: raw(want)})
}

func wantAbsent(t testing.TB, b store.Queries, addr store.Address) {
	t.Helper()
	if v, ok := value(t, b, addr); ok {
		t.Fatalf("%s: got %s, want nothing", addr, v.Value)
	}
}

func list(t testing.TB, b store.Queries, addr store.Address, q store.ListQuery) []store.ListElement {
	t.Helper()
	els, err := b.ReadList(t.Context(), addr, q)
	if err != nil {
		t.Fatalf("read list %s: %v", addr, err)
	}
	return els
}

func wantList(t testing.TB, b store.Queries, addr store.Address, q store.ListQuery, want ...store.ListElement) {
	t.Helper()
	got := list(t, b, addr, q)
	if len(got) == 0 && len(want) == 0 {
		return
	}
	same(t, "list "+addr.String(), got, want)
}

func element(seq int64, value string) store.ListElement {
	return store.ListElement{Seq: seq, Value: raw(value)}
}

func stats(t testing.TB, b store.Queries) store.Stats {
	t.Helper()
	s, err := b.Stats(t.Context())
	if err != nil {
		t.Fatalf("read stats: %v", err)
	}
	return s
}

func records(t testing.TB, b store.Queries) []store.Record {
	t.Helper()
	snap, err := b.Snapshot(t.Context())
	if err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	out, err := store.Collect(snap)
	if err != nil {
		t.Fatalf("read snapshot: %v", err)
	}
	return out
}

// content is everything that can be observed of a store.
type content struct {
	Records []store.Record
	Stats   store.Stats
}

func contents(t testing.TB, b store.Queries) content {
	t.Helper()
	return content{records(t, b), stats(t, b)}
}

func branchIDs(t testing.TB, b store.Queries, q store.BranchQuery) []string {
	t.Helper()
	es, err := b.ScanBranch(t.Context(), q)
	if err != nil {
		t.Fatalf("scan branch: %v", err)
	}
	ids := make([]string, len(es))
	for i, e := range es {
		ids[i] = e.ID
	}
	return ids
}

func entryIDs(t testing.TB, b store.Queries, q store.EntryQuery) []string {
	t.Helper()
	es, err := b.ScanEntries(t.Context(), q)
	if err != nil {
		t.Fatalf("scan entries: %v", err)
	}
	ids := make([]string, len(es))
	for i, e := range es {
		ids[i] = e.ID
	}
	return ids
}

func usageIDs(t testing.TB, b store.Queries, q store.UsageQuery) []string {
	t.Helper()
	rows, err := b.ScanUsage(t.Context(), q)
	if err != nil {
		t.Fatalf("scan usage: %v", err)
	}
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	return ids
}
