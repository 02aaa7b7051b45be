package storetest

import (
	"encoding/json"
	"testing"

	"github.com/drover-run/drover/pkg/store"
)

// The rules of values (spec §1.3, §1.4).
var valueRules = []rule{
	{"sets, replaces, deletes and recreates without tombstones", setsAndDeletes},
	{"JSON null is a value, not absence", nullIsAValue},
	{"writes of one transaction apply in order", appliesInOrder},
	{"value writes leave entries and usage alone", leavesHistoryAlone},
	{"a scan covers one namespace and one key prefix", scansPrefix},
	{"a scan is in code point order", scansInCodePointOrder},
	{"kinds, namespaces and keys do not mix", addressesAreExact},
}

func setsAndDeletes(t *testing.T, f *fixture) {
	b := f.empty(t)
	addr := valueA.Address()
	res := commit(t, b, valueA.Set(raw("1")))
	wantValue(t, b, addr, res.FirstSeq, "1")
	res = commit(t, b, valueA.Set(raw("2")), valueA.Set(raw("3")))
	wantValue(t, b, addr, res.Seqs[1], "3")
	commit(t, b, valueA.Delete())
	wantAbsent(t, b, addr)
	commit(t, b, valueA.Delete(), valueB.Delete())
	wantAbsent(t, b, addr)
	res = commit(t, b, valueA.Set(raw("4")))
	wantValue(t, b, addr, res.FirstSeq, "4")
	res = commit(t, b, valueA.Delete(), valueA.Set(raw("5")))
	wantValue(t, b, addr, res.Seqs[1], "5")
	b = f.reopen(t, b)
	wantValue(t, b, addr, res.Seqs[1], "5")
	wantAbsent(t, b, valueB.Address())
}

func nullIsAValue(t *testing.T, f *fixture) {
	b := f.empty(t)
	res := commit(t, b, valueA.Set(raw("null")))
	b = f.reopen(t, b)
	wantValue(t, b, valueA.Address(), res.FirstSeq, "null")
	wantAbsent(t, b, valueB.Address())
}

func appliesInOrder(t *testing.T, f *fixture) {
	b := f.empty(t)
	value := func(key string) store.Value[json.RawMessage] { return store.NewValue[json.RawMessage]("app", key) }
	list := func(key string) store.List[json.RawMessage] { return store.NewList[json.RawMessage]("app.l", key) }
	res := commit(t, b,
		value("set delete").Set(raw("1")), value("set delete").Delete(),
		value("set set").Set(raw("1")), value("set set").Set(raw("2")),
		list("append delete append").Append(raw("1")), list("append delete append").Delete(), list("append delete append").Append(raw("3")),
		list("append delete").Append(raw("1")), list("append delete").Delete())
	for range 2 {
		wantAbsent(t, b, value("set delete").Address())
		wantValue(t, b, value("set set").Address(), res.Seqs[3], "2")
		wantList(t, b, list("append delete append").Address(), store.ListQuery{}, element(res.Seqs[6], "3"))
		wantList(t, b, list("append delete").Address(), store.ListQuery{})
		b = f.reopen(t, b)
	}
}

func leavesHistoryAlone(t *testing.T, f *fixture) {
	b := f.empty(t)
	commit(t, b, userEntry("e1", "", "x"), usageWrite("u1", "e1", 3, 0.1))
	before, beforeStats := entries(t, b, "e1"), stats(t, b)
	commit(t, b, valueA.Set(raw("1")), listA.Append(raw("1")))
	res := commit(t, b, valueA.Set(raw("2")), listA.Delete())
	same(t, "entries", entries(t, b, "e1"), before)
	same(t, "entry ids", entryIDs(t, b, store.EntryQuery{}), []string{"e1"})
	same(t, "usage", usageIDs(t, b, store.UsageQuery{}), []string{"u1"})
	same(t, "stats", stats(t, b), beforeStats)
	same(t, "commit stats", res.Stats, beforeStats)
	wantValue(t, b, valueA.Address(), res.FirstSeq, "2")
}

func scanKeys(t *testing.T, b store.Backend, prefix store.Address) []string {
	t.Helper()
	vs, err := b.ScanValues(t.Context(), prefix)
	if err != nil {
		t.Fatalf("scan %s: %v", prefix, err)
	}
	keys := make([]string, len(vs))
	for i, v := range vs {
		if v.Namespace != prefix.Namespace {
			t.Fatalf("scan of %s returned %s", prefix, v.Address)
		}
		keys[i] = v.Key
	}
	return keys
}

func scansPrefix(t *testing.T, f *fixture) {
	b := f.empty(t)
	var tx store.Tx
	for _, key := range []string{"", "a", "ab", "a%", "a_b", "A", "b", "ab:1"} {
		tx = append(tx, store.NewValue[string]("app", key).Set(key))
	}
	tx = append(tx, store.NewValue[string]("app.x", "ab").Set("other namespace"), store.NewList[string]("app", "al").Append("a list"))
	commit(t, b, tx...)
	for prefix, want := range map[string][]string{
		"":     {"", "A", "a", "a%", "a_b", "ab", "ab:1", "b"},
		"a":    {"a", "a%", "a_b", "ab", "ab:1"},
		"ab":   {"ab", "ab:1"},
		"a%":   {"a%"},
		"a_":   {"a_b"},
		"ab:":  {"ab:1"},
		"none": {},
	} {
		same(t, "keys under prefix "+prefix, scanKeys(t, b, store.Address{Namespace: "app", Key: prefix}), want)
	}
	same(t, "keys of an absent namespace", scanKeys(t, b, store.Address{Namespace: "ap"}), []string{})
}

func scansInCodePointOrder(t *testing.T, f *fixture) {
	b := f.empty(t)
	// UTF-16 order would put U+10000 before U+E000.
	want := []string{"", "\t", " ", "A", "Z", "a", "z", "\x7f", "\u0080", "é", "\ud7ff", "\xed\xa0\x80", "\xed\xbf\xbf", "\ue000", "\uffff", "\U00010000", "\U0010ffff"}
	for i := range want {
		key := want[(i*7)%len(want)] // an order that is not theirs
		commit(t, b, store.NewValue[string]("app", "k"+key).Set(key))
	}
	keys := make([]string, len(want))
	for i, k := range want {
		keys[i] = "k" + k
	}
	for range 2 {
		same(t, "keys", scanKeys(t, b, store.Address{Namespace: "app", Key: "k"}), keys)
		b = f.reopen(t, b)
	}
}

func addressesAreExact(t *testing.T, f *fixture) {
	b := f.empty(t)
	set := func(ns, key string) store.Write { return store.NewValue[string](ns, key).Set(ns + "|" + key) }
	res := commit(t, b, set("a", "b:c"), set("a:b", "c"), set("a/b", "c"), set("a", "b/c"), set("a", ""), set("A", ""))
	for i, a := range []store.Address{{Namespace: "a", Key: "b:c"}, {Namespace: "a:b", Key: "c"}, {Namespace: "a/b", Key: "c"},
		{Namespace: "a", Key: "b/c"}, {Namespace: "a"}, {Namespace: "A"}} {
		wantValue(t, b, a, res.Seqs[i], `"`+a.Namespace+"|"+a.Key+`"`)
	}
	wantAbsent(t, b, store.Address{Namespace: "a", Key: "c"})
	wantList(t, b, store.Address{Namespace: "a"}, store.ListQuery{})
}
