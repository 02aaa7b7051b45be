package storetest

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// The rules of what may be written and of the bytes it is kept as (spec §1.3,
// §2.1, D5).
var admissionRules = []rule{
	{"refuses what is not JSON", refusesNonJSON},
	{"refuses unusable addresses", refusesAddresses},
	{"refuses names that JSON cannot carry", refusesNames},
	{"refuses entries that break the structure", refusesStructure},
	{"refuses payloads that claim a structural field", refusesStructuralMembers},
	{"refuses pending assistant messages", refusesPendingAssistant},
	{"refuses values that cannot be encoded", refusesUnencodable},
	{"keeps every payload byte but white space between tokens", keepsPayloadBytes},
	{"keeps lone surrogates in text, keys and custom types", keepsLoneSurrogates},
	{"keeps unknown usage fields and details", keepsUsageBytes},
	{"stores large payloads", storesLargePayloads},
}

func refusesNonJSON(t *testing.T, f *fixture) {
	b := f.empty(t)
	for _, bad := range []string{"", " ", "{", `{"a":}`, `[1,]`, "NaN", "Infinity", "undefined", `'a'`, `"a`, "1 2", "{}x", "01", "\x00", `"` + "\n" + `"`} {
		t.Run(bad, func(t *testing.T) {
			refuse(t, b, valueA.Set(raw(bad)))
			refuse(t, b, listA.Append(raw(bad)))
			refuse(t, b, store.InsertUsage(store.NewUsage{ID: "u", RawUsage: raw(`{}`), Details: raw(bad)}))
		})
	}
	refuse(t, b, valueA.Set(nil))
	for _, bad := range []string{`{"message":`, `[]`, `"text"`, `null`, `1`} {
		t.Run("payload "+bad, func(t *testing.T) {
			refuse(t, b, store.InsertEntry(store.NewEntry{ID: "e", Type: store.TypeMessage, Payload: raw(bad)}))
			refuse(t, b, store.InsertEntry(store.NewEntry{ID: "e", Type: store.TypeCompaction, Payload: raw(bad)}))
			refuse(t, b, store.InsertUsage(store.NewUsage{ID: "u", RawUsage: raw(bad)}))
		})
	}
}

func refusesAddresses(t *testing.T, f *fixture) {
	b := f.empty(t)
	for _, a := range []store.Address{{}, {Key: "k"}, {Namespace: "n\x00"}, {Namespace: "n", Key: "k\x00"}} {
		t.Run(a.String(), func(t *testing.T) {
			refuse(t, b, store.NewValue[json.RawMessage](a.Namespace, a.Key).Set(raw("1")))
			refuse(t, b, store.NewValue[json.RawMessage](a.Namespace, a.Key).Delete())
			refuse(t, b, store.NewList[json.RawMessage](a.Namespace, a.Key).Append(raw("1")))
			refuse(t, b, store.NewList[json.RawMessage](a.Namespace, a.Key).Delete())
		})
	}
}

func refusesNames(t *testing.T, f *fixture) {
	b := f.empty(t)
	// Bytes that are no UTF-8, and two halves of one character.
	for _, name := range []string{"\xff", "a\xc3", "\xed\xa0\xbd\xed\xb8\x80"} {
		refuse(t, b, store.NewValue[string]("app", name).Set("x"))
		refuse(t, b, store.NewValue[string](name, "").Delete())
		refuse(t, b, store.NewList[string]("app", name).Append("x"))
		refuse(t, b, userEntry(name, "", "x"))
		refuse(t, b, customEntry("e", "", name, nil))
		refuse(t, b, usageWrite(name, "", 1, 0))
		refuse(t, b, usageWrite("u", name, 1, 0))
	}
}

func refusesStructuralMembers(t *testing.T, f *fixture) {
	b := f.empty(t)
	for member, name := range map[string]string{
		`"id":"other"`: "id", `"parentId":null`: "parentId", `"seq":1`: "seq", `"timestamp":1`: "timestamp",
		`"type":"message"`: "type", `"kind":"entry"`: "kind", `"customType":"t"`: "customType", `"\u0069d":"other"`: "id",
	} {
		for _, e := range []store.NewEntry{
			{ID: "e", Type: store.TypeCustom, CustomType: "app.x", Payload: raw(`{"data":1,` + member + `}`)},
			{ID: "e", Type: store.TypeMessage, Payload: raw(`{` + member + `,"message":` + userJSON("x") + `}`)},
			{ID: "e", Type: store.TypeCompaction, Payload: raw(`{` + member + `}`)},
		} {
			_, err := b.Commit(t.Context(), store.Tx{valueA.Set(raw("1")), store.InsertEntry(e)})
			var invalid *store.InvalidWrite
			var claimed *store.StructuralMember
			if !errors.As(err, &invalid) || invalid.Index != 1 || !errors.As(err, &claimed) || claimed.Name != name {
				t.Errorf("%s in a %s: got %v, want a *store.StructuralMember of write 1", member, e.Type, err)
			}
		}
	}
	// Deeper down, and under other spellings, names are the application's own.
	commit(t, b, store.InsertEntry(store.NewEntry{ID: "e", Type: store.TypeCustom, CustomType: "app.x",
		Payload: raw(`{"data":{"id":1,"type":"x"},"ID":2,"entryId":3}`)}))
	same(t, "what is left", entryIDs(t, b, store.EntryQuery{}), []string{"e"})
}

func refusesStructure(t *testing.T, f *fixture) {
	b := f.empty(t)
	msg := raw(`{"message":` + userJSON("x") + `}`)
	cases := map[string]store.NewEntry{
		"an entry without an id":                {Type: store.TypeMessage, Payload: msg},
		"a custom entry without a custom type":  {ID: "e", Type: store.TypeCustom},
		"a message entry with a custom type":    {ID: "e", Type: store.TypeMessage, CustomType: "t", Payload: msg},
		"a compaction entry with a custom type": {ID: "e", Type: store.TypeCompaction, CustomType: "t", Payload: raw(compactionPayload)},
		"a message entry without a message":     {ID: "e", Type: store.TypeMessage, Payload: raw(`{"terminate":true}`)},
	}
	for name, e := range cases {
		t.Run(name, func(t *testing.T) { refuse(t, b, store.InsertEntry(e)) })
	}
	for _, kind := range []store.WriteKind{store.KindEntry, store.KindUsage} {
		refuse(t, b, store.Write{Kind: kind})
	}
	t.Run("a usage row without an id", func(t *testing.T) { refuse(t, b, usageWrite("", "", 1, 0)) })
}

func refusesPendingAssistant(t *testing.T, f *fixture) {
	b := f.empty(t)
	m := message.Message(`{"role":"assistant","content":[],"stopReason":"pending"}`)
	refuse(t, b, store.InsertEntry(store.MessageEntry("e1", "", m)))
}

func refusesUnencodable(t *testing.T, f *fixture) {
	b := f.empty(t)
	refuse(t, b, store.NewValue[chan int]("app", "k").Set(nil))
	refuse(t, b, valueA.Set(raw("1")), store.NewList[func()]("app", "k").Append(nil))
}

func keepsPayloadBytes(t *testing.T, f *fixture) {
	b := f.empty(t)
	payload := "{ \"z\" : 1.50e+2,\n\t\"a\": [ 1 , 0.10, -0, 1E400 ] , \"a\":\"\\u0041\\/ \\ud83d\\ude00 & <b>\", \"ä\" : \"  two  \" }"
	want := `{"z":1.50e+2,"a":[1,0.10,-0,1E400],"a":"\u0041\/ \ud83d\ude00 & <b>","ä":"  two  "}`
	res := commit(t, b,
		valueA.Set(raw(payload)),
		listA.Append(raw(payload)),
		customEntry("e1", "", "app.note", raw(payload)))
	check := func() {
		t.Helper()
		wantValue(t, b, valueA.Address(), res.Seqs[0], want)
		wantList(t, b, listA.Address(), store.ListQuery{}, element(res.Seqs[1], want))
		same(t, "payload", string(entries(t, b, "e1")["e1"].Payload), `{"data":`+want+`}`)
	}
	check()
	b = f.reopen(t, b)
	check()
}

func keepsLoneSurrogates(t *testing.T, f *fixture) {
	b := f.empty(t)
	const high, low = "\xed\xa0\xbd", "\xed\xb8\x80" // WTF-8 of U+D83D and U+DE00
	addr := store.NewValue[string]("app.text", "k"+high)
	joined := store.NewValue[string]("app.text", "k"+low+high)
	res := commit(t, b,
		addr.Set("a"+high+"b"),
		joined.Set(low),
		valueA.Set(raw(`"\ud83d and \uDE00"`)),
		customEntry("e1", "", "app."+low, nil))
	check := func() {
		t.Helper()
		wantValue(t, b, addr.Address(), res.Seqs[0], `"a\ud83db"`)
		wantValue(t, b, joined.Address(), res.Seqs[1], `"\ude00"`)
		wantValue(t, b, valueA.Address(), res.Seqs[2], `"\ud83d and \uDE00"`)
		same(t, "custom type", entries(t, b, "e1")["e1"].CustomType, "app."+low)
		got, ok, err := store.Get(t.Context(), b, addr)
		if err != nil || !ok {
			t.Fatalf("get: %v, %v", ok, err)
		}
		same(t, "decoded text", got.Value, "a"+high+"b")
	}
	check()
	b = f.reopen(t, b)
	check()
}

func keepsUsageBytes(t *testing.T, f *fixture) {
	b := f.empty(t)
	res := commit(t, b, store.InsertUsage(store.NewUsage{
		ID: "u1", Adjustment: true,
		RawUsage: raw(`{"input": 12, "novel": {"x": 1.0}, "cost": {"total": 0.10}}`),
		Details:  raw(`[null, {"b":1, "a":2}]`),
	}), store.InsertUsage(store.NewUsage{ID: "u2", RawUsage: raw(`{}`), Details: raw(`null`)}))
	want := []store.UsageRow{
		{ID: "u1", Seq: res.Seqs[0], Adjustment: true,
			Usage: raw(`{"input":12,"novel":{"x":1.0},"cost":{"total":0.10}}`), Details: raw(`[null,{"b":1,"a":2}]`)},
		{ID: "u2", Seq: res.Seqs[1], Usage: raw(`{}`), Details: raw(`null`)},
	}
	for range 2 {
		rows, err := b.ScanUsage(t.Context(), store.UsageQuery{})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "usage rows", rows, want)
		same(t, "stats", stats(t, b), store.Stats{Usage: message.Usage{Input: 12, Cost: message.Cost{Total: 0.1}}})
		b = f.reopen(t, b)
	}
}

func storesLargePayloads(t *testing.T, f *fixture) {
	b := f.empty(t)
	big := make([]byte, 8<<20)
	for i := range big {
		big[i] = 'a' + byte(i%26)
	}
	text := `"` + string(big) + `"`
	res := commit(t, b, valueA.Set(raw(text)), userEntry("e1", "", string(big)))
	b = f.reopen(t, b)
	wantValue(t, b, valueA.Address(), res.Seqs[0], text)
	same(t, "payload size", len(entries(t, b, "e1")["e1"].Payload), len(`{"message":`+userJSON("")+`}`)+len(big))

	_, err := b.Commit(t.Context(), store.Tx{valueB.Set(make(json.RawMessage, store.MaxPayload+1))})
	var invalid *store.InvalidWrite
	var large *store.TooLarge
	if !errors.As(err, &invalid) || !errors.As(err, &large) {
		t.Fatalf("commit of %d bytes: got %v, want *TooLarge in an *InvalidWrite", store.MaxPayload+1, err)
	}
	same(t, "size in the error", large.Size, int64(store.MaxPayload+1))
}
