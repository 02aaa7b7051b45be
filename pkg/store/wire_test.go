package store_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

func TestCreateLaneWritesItsThreeValues(t *testing.T) {
	s, r := recorded(t)
	cfg := store.LaneConfiguration{Model: message.ModelRef{Provider: "p", ModelID: "m/1"}, ThinkingLevel: "high", ActiveToolNames: []string{"bash", "a\"b"}}
	if _, err := s.CreateLane(t.Context(), "side", "", cfg); err != nil {
		t.Fatal(err)
	}
	wantTrace(t, r, `TX[ upsert pi.lane.config/side = {"model":{"provider":"p","modelId":"m/1"},"thinkingLevel":"high","activeToolNames":["bash","a\"b"]}, `+
		`upsert pi.lane.leaf/side = null, upsert pi.lane.state/side = {"currentOperationId":null,"pendingNextRun":[]} ]`)
	got, ok, err := store.Get(t.Context(), s, store.LaneConfig("side"))
	if err != nil || !ok {
		t.Fatalf("config: %v, %v", ok, err)
	}
	if diff := cmp.Diff(cfg, got.Value); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

func TestTwoCreationsOfOneLane(t *testing.T) {
	s, _ := recorded(t)
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { _, errs[i] = s.CreateLane(t.Context(), "side", "", store.LaneConfiguration{}) })
	}
	wg.Wait()
	made := 0
	for _, err := range errs {
		var exists *store.LaneExists
		if err == nil {
			made++
		} else if !errors.As(err, &exists) {
			t.Error(err)
		}
	}
	if made != 1 {
		t.Errorf("%d creations succeeded", made)
	}
}

func TestCheckLane(t *testing.T) {
	for _, name := range []string{"a", "main", "slack/C1:17.5", "é 会話", strings.Repeat("x", 128), ".."} {
		if err := store.CheckLane(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, want := range map[string]string{
		"": "is empty", strings.Repeat("é", 65): "has 130 bytes, more than 128", "a\x00": "holds the control character U+0000",
		"a\tb": "holds the control character U+0009", "\u0085": "holds the control character U+0085", "a\xff": "is not UTF-8", "\xed\xa0\x80": "is not UTF-8",
	} {
		var invalid *store.InvalidLane
		if err := store.CheckLane(name); !errors.As(err, &invalid) || *invalid != (store.InvalidLane{Lane: name, Reason: want}) {
			t.Errorf("%q: got %v, want %s", name, err, want)
		}
	}
}

func TestBuiltinValuesOnTheWire(t *testing.T) {
	encode := func(w store.Write) string { return string(w.Value) }
	for want, got := range map[string]string{
		`null`:      encode(store.LaneLeaf("l").Set("")),
		`"e\ud800"`: encode(store.LaneLeaf("l").Set("e\xed\xa0\x80")),
		`{"currentOperationId":null,"pendingNextRun":[]}`:                                encode(store.LaneStateOf("l").Set(store.LaneState{})),
		`{"currentOperationId":"o","pendingNextRun":["a","b"]}`:                          encode(store.LaneStateOf("l").Set(store.LaneState{CurrentOperationID: "o", PendingNextRun: []string{"a", "b"}})),
		`{"model":{"provider":"","modelId":""},"thinkingLevel":"","activeToolNames":[]}`: encode(store.LaneConfig("l").Set(store.LaneConfiguration{})),
		`{"type":"message","payload":{"role":"user"}}`:                                   encode(store.Pending("e").Set(store.PendingEntry{Type: store.TypeMessage, Payload: raw(`{"role":"user"}`)})),
		`{"type":"custom","customType":"c"}`:                                             encode(store.Pending("e").Set(store.PendingEntry{Type: store.TypeCustom, CustomType: "c"})),
		`"<&>"`:                                                                          encode(store.SessionName().Set("<&>")),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for _, p := range []store.PendingEntry{
		{Type: store.TypeMessage, Payload: raw(`{"role":"user","a":1.0}`)},
		{Type: store.TypeCustom, CustomType: "c", Payload: raw(`null`)},
		{Type: store.TypeCustom, CustomType: "c"},
	} {
		s, _ := recorded(t)
		if err := store.SetValue(t.Context(), s.View("main"), store.Pending("e"), p); err != nil {
			t.Fatal(err)
		}
		got, ok, err := store.Get(t.Context(), s, store.Pending("e"))
		if err != nil || !ok {
			t.Fatalf("pending entry: %v, %v", ok, err)
		}
		if diff := cmp.Diff(p, got.Value); diff != "" {
			t.Errorf("pending entry (-want +got):\n%s", diff)
		}
	}
}

func TestEntryAndUsageOnTheWire(t *testing.T) {
	msg := store.Entry{
		Structure: store.Structure{ID: "e1", Seq: 3, Timestamp: 4, Type: store.TypeMessage},
		Payload:   raw(`{"message":{"role":"user","n":1.0},"terminate":true}`),
	}
	bare := store.Entry{Structure: store.Structure{ID: "e2", ParentID: "e1", Seq: 5, Timestamp: 6, Type: store.TypeCustom, CustomType: "c\""}, Payload: raw(`{}`)}
	row := store.UsageRow{ID: "u1", Seq: 7, EntryID: "e1", Adjustment: true, Usage: raw(`{"input":1}`), Details: raw(`null`)}
	for want, got := range map[string]json.Marshaler{
		`{"id":"e1","parentId":null,"seq":3,"timestamp":4,"type":"message","message":{"role":"user","n":1.0},"terminate":true}`: msg,
		`{"id":"e2","parentId":"e1","seq":5,"timestamp":6,"type":"custom","customType":"c\""}`:                                  bare,
		`{"id":"u1","seq":7,"entryId":"e1","adjustment":true,"usage":{"input":1},"details":null}`:                               row,
		`{"id":"u2","seq":8,"adjustment":false,"usage":{}}`:                                                                     store.UsageRow{ID: "u2", Seq: 8, Usage: raw(`{}`)},
	} {
		b, err := got.MarshalJSON()
		if err != nil || string(b) != want {
			t.Errorf("got %s, %v; want %s", b, err, want)
		}
	}
	if m := msg.Message(); string(m) != `{"role":"user","n":1.0}` {
		t.Errorf("message %s", m)
	}
	if m := bare.Message(); m != nil {
		t.Errorf("message of a custom entry: %s", m)
	}
}
