package owner

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

const nowhere = "01890000-0000-7000-8000-000000000000"

// Queues on an idle lane, and what happens to requests that are repeated.
func TestQueuesOfAnIdleLane(t *testing.T) {
	h := newHouse(t, enginetest.Say("yes"))
	c := h.dial(t)
	for _, queue := range []func(context.Context, string, engine.Queued) (Placement, error){c.Steer, c.FollowUp} {
		_, err := queue(t.Context(), "", engine.Queued{Text: "x"})
		wantRefusal(t, err, &engine.NoActiveRun{Lane: "main"})
	}
	first := must[Placement](t)(c.NextRun(t.Context(), "main", engine.Queued{
		Text: "look", Images: []message.Block{{Type: message.BlockImage, Data: "aGk=", MimeType: "image/png"}},
	}))
	wantEqual(t, "placement", first, Placement{EntryID: first.EntryID, Queued: true})
	again := engine.Queued{EntryID: first.EntryID, Text: "look"}
	wantEqual(t, "repeat", must[Placement](t)(c.NextRun(t.Context(), "", again)), Placement{EntryID: first.EntryID, Queued: true, Already: true})
	wantEqual(t, "queue", h.queues(t).NextRun, []string{"look"})

	_, err := c.NextRun(t.Context(), "", engine.Queued{})
	wantRefusal(t, err, &engine.InvalidMessage{Lane: "main", Reason: "there is nothing to send: the message is empty"})
	_, err = c.NextRun(t.Context(), "", engine.Queued{Message: message.Message(`{"role":"robot"}`)})
	var invalid *engine.InvalidMessage
	if !errors.As(err, &invalid) {
		t.Errorf("an unknown role: %v", err)
	}
	_, err = c.NextRun(t.Context(), "", engine.Queued{Message: message.Message("{")})
	if !errors.As(err, &invalid) {
		t.Errorf("a message of broken JSON: %v", err)
	}
	_, err = c.NextRun(t.Context(), "", engine.Queued{Message: message.Message("{\"role\":\"user\",\"content\":\"\xff\"}")})
	var unreadable *RemoteError
	if !errors.As(err, &unreadable) || unreadable.Code != "invalid_request" {
		t.Errorf("text that is no text: %v", err)
	}
	_, err = c.NextRun(t.Context(), "elsewhere", again)
	wantRefusal(t, err, &engine.LaneNotFound{Lane: "elsewhere", Known: []string{"main"}})

	h.Prompt("go")
	wantEqual(t, "repeat of what is placed", must[Placement](t)(c.NextRun(t.Context(), "", again)), Placement{EntryID: first.EntryID, Already: true})
	wantEqual(t, "transcript", h.transcript(t), []string{"user look", "user go", "assistant yes"})

	second := must[Placement](t)(c.NextRun(t.Context(), "", engine.Queued{Text: "later"}))
	var kinds []engine.CancelResult
	for _, id := range []string{second.EntryID, second.EntryID, first.EntryID} {
		kinds = append(kinds, must[engine.CancelResult](t)(c.CancelQueued(t.Context(), "", id)))
	}
	wantEqual(t, "cancelled", kinds, []engine.CancelResult{engine.CancelledItem, engine.ItemNotFound, engine.AlreadyConsumed})
}

// White space in a payload does not end a request, and every other byte of it
// arrives.
func TestPayloadsArriveAsTheyAre(t *testing.T) {
	h := newHouse(t, enginetest.Say("yes"))
	c := h.dial(t)
	data := json.RawMessage("{ \"b\" : 1.0 ,\n\t\"a\":\"\\ud83d <caf\\u00e9>\", \"b\": null }")
	content := store.PendingEntry{Type: store.TypeCustom, CustomType: "note", Payload: data}
	got := must[Placement](t)(c.Append(t.Context(), "", "", content))
	wantEqual(t, "placement", got, Placement{EntryID: got.EntryID})
	bare := store.PendingEntry{Type: store.TypeCustom, CustomType: "bare"}
	must[Placement](t)(c.Append(t.Context(), "", "", bare))
	null := store.PendingEntry{Type: store.TypeCustom, CustomType: "null", Payload: json.RawMessage("null")}
	must[Placement](t)(c.Append(t.Context(), "", "", null))
	wantEqual(t, "repeat", must[Placement](t)(c.Append(t.Context(), "", got.EntryID, content)), Placement{EntryID: got.EntryID, Already: true})
	wantEqual(t, "transcript", h.transcript(t), []string{
		`note {"data":{"b":1.0,"a":"\ud83d <caf\u00e9>","b":null}}`, `bare {}`, `null {"data":null}`,
	})
	for _, bad := range []store.PendingEntry{{}, {Type: store.TypeMessage}, {Type: store.TypeCustom}, {Type: store.TypeCompaction, Payload: json.RawMessage("{}")}} {
		_, err := c.Append(t.Context(), "", "", bad)
		wantRefusal(t, err, &engine.InvalidMessage{Lane: "main", Reason: "only a message, or a custom entry with its type, can be appended"})
	}
	at := store.Address{Namespace: "app", Key: "k\x01/\xed\xa0\xbd"}
	must[any](t)(nil, c.SetValue(t.Context(), at, data))
	stored, _, err := store.Get(t.Context(), h.Session, store.NewValue[json.RawMessage]("app", at.Key))
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "value", string(stored.Value), `{"b":1.0,"a":"\ud83d <caf\u00e9>","b":null}`)
}

// A run takes what is queued over the socket; an abort gives the queues back and
// keeps the writes (bug B40), however often it is asked for.
func TestAbortOfAHangingRun(t *testing.T) {
	h := newHouse(t, enginetest.Reply{Chunks: []string{"wait"}, Hang: true})
	id, ended := h.hang(t)
	c := h.dial(t)
	must[Placement](t)(c.Steer(t.Context(), "", engine.Queued{Text: "left"}))
	follow := must[Placement](t)(c.FollowUp(t.Context(), "", engine.Queued{Text: "then"}))
	must[Placement](t)(c.NextRun(t.Context(), "", engine.Queued{Text: "next"}))
	write := store.PendingEntry{Type: store.TypeCustom, CustomType: "note"}
	got := must[Placement](t)(c.Append(t.Context(), "", "", write))
	wantEqual(t, "write", got, Placement{EntryID: got.EntryID, Queued: true})
	got = must[Placement](t)(c.Append(t.Context(), "", got.EntryID, write))
	wantEqual(t, "repeat of the write", got, Placement{EntryID: got.EntryID, Queued: true, Already: true})
	wantEqual(t, "queues", h.queues(t), struct{ Steer, FollowUp, NextRun, Writes []string }{
		[]string{"left"}, []string{"then"}, []string{"next"}, []string{"note"},
	})

	other := h.dial(t)
	waiting := ask(func() (json.RawMessage, error) { return other.WaitOperation(context.Background(), "", id) })
	r := must[AbortResult](t)(c.Abort(t.Context(), "", id, false))
	wantEqual(t, "steering given back", r.Steer[0].Text(), "left")
	wantEqual(t, "follow-up given back", r.FollowUp[0].Text(), "then")
	r.Steer, r.FollowUp = nil, nil
	wantEqual(t, "abort", r, AbortResult{AbortRequest: engine.AbortRequest{OperationID: id, NewlyRequested: true}})
	outcome := must[json.RawMessage](t)(c.WaitOperation(t.Context(), "", id))
	<-ended
	wantEqual(t, "the other's wait", string(waiting.get(t)), string(outcome))
	f := must[fields](t)(parseFields(outcome))
	wantEqual(t, "outcome", must[string](t)(f.text("kind")), "aborted")

	again := must[AbortResult](t)(c.Abort(t.Context(), "", id, false))
	wantEqual(t, "late repeat", again, AbortResult{
		AbortRequest: engine.AbortRequest{OperationID: id, Steer: []message.Message{}, FollowUp: []message.Message{}}, Outcome: outcome,
	})
	_, err := c.Abort(t.Context(), "", nowhere, false)
	wantRefusal(t, err, &engine.OperationMismatch{Lane: "main", Expected: nowhere, Last: id})
	_, err = c.WaitOperation(t.Context(), "", nowhere)
	wantRefusal(t, err, &engine.OperationMismatch{Lane: "main", Expected: nowhere, Last: id})
	_, err = c.FollowUp(t.Context(), "", engine.Queued{EntryID: follow.EntryID, Text: "then"})
	wantRefusal(t, err, &engine.NoActiveRun{Lane: "main"})
	wantEqual(t, "queues", h.queues(t), struct{ Steer, FollowUp, NextRun, Writes []string }{NextRun: []string{"next"}})
	wantEqual(t, "transcript", h.transcript(t), []string{"user go", "assistant ", "note {}"})
}

// An operation that nobody drives is cancelled only, or driven to its end.
func TestAbortOfWhatNobodyDrives(t *testing.T) {
	h := newHouse(t, enginetest.Say("never"))
	c := h.dial(t)
	id := h.Accept("go")
	wait := func() LaneStatus {
		s := must[[]LaneStatus](t)(c.Wait(t.Context(), "main"))
		if len(s) != 1 {
			t.Fatalf("%d lanes", len(s))
		}
		s[0].Raw, s[0].LastResult = nil, nil
		return s[0]
	}
	wantEqual(t, "wait", wait(), LaneStatus{Lane: "main", OperationID: id, Status: engine.StatusSuspended})
	if outcome := must[json.RawMessage](t)(c.WaitOperation(t.Context(), "", id)); outcome != nil {
		t.Errorf("outcome %s of an operation that is open", outcome)
	}
	for i := range 2 {
		r := must[AbortResult](t)(c.Abort(t.Context(), "", id, true))
		wantEqual(t, "newly requested", r.NewlyRequested, i == 0)
	}
	wantEqual(t, "wait", wait(), LaneStatus{Lane: "main", OperationID: id, Status: engine.StatusAborting})
	r := must[AbortResult](t)(c.Abort(t.Context(), "", id, false))
	wantEqual(t, "newly requested", r.NewlyRequested, false)
	outcome := must[json.RawMessage](t)(c.WaitOperation(t.Context(), "", id))
	if kind, _ := rawjson.GetString(outcome, "kind"); kind != "aborted" {
		t.Errorf("outcome %s", outcome)
	}
	must[any](t)(nil, h.server.Quiesce(t.Context()))
	info := must[engine.ExecutionInfo](t)(h.Lane.InspectExecution(t.Context()))
	if info.Current != nil || info.LastResult.Outcome != "aborted" {
		t.Errorf("after the abort has settled: %+v", info)
	}
}

func TestMetadataOverTheSocket(t *testing.T) {
	h := newHouse(t, enginetest.Say("yes"))
	h.Prompt("go")
	c := h.dial(t)
	tree := h.Session.View(store.MainLane)
	leaf := string(must[store.LeafID](t)(tree.LeafID(t.Context())))
	name := func() string { s, _, err := tree.Name(t.Context()); return must[string](t)(s, err) }
	label := func() string { s, _, err := tree.Label(t.Context(), leaf); return must[string](t)(s, err) }
	for _, want := range []string{"näme", ""} {
		must[any](t)(nil, c.SetName(t.Context(), want))
		wantEqual(t, "name", name(), want)
		must[any](t)(nil, c.SetLabel(t.Context(), leaf, want))
		wantEqual(t, "label", label(), want)
	}
	wantRefusal(t, c.SetName(t.Context(), "two\nlines"), &RemoteError{Code: "usage", Message: "name holds a control character"})
	wantRefusal(t, c.SetLabel(t.Context(), leaf, "\x1b"), &RemoteError{Code: "usage", Message: "label holds a control character"})
	wantRefusal(t, c.SetLabel(t.Context(), "nowhere", "x"), &store.UnknownTarget{ID: "nowhere"})
}

func TestValuesOverTheSocket(t *testing.T) {
	h := newHouse(t, enginetest.Say("yes"))
	c := h.dial(t)
	at := store.Address{Namespace: "app", Key: "k"}
	value, list := store.NewValue[json.RawMessage]("app", "k"), store.NewList[json.RawMessage]("app", "k")
	get := func() string {
		v, _, err := store.Get(t.Context(), h.Session, value)
		return must[string](t)(string(v.Value), err)
	}
	read := func() (all []string) {
		for _, e := range must[[]store.Element[json.RawMessage]](t)(store.ReadList(t.Context(), h.Session, list, store.ListQuery{})) {
			all = append(all, string(e.Value))
		}
		return all
	}
	must[any](t)(nil, c.SetValue(t.Context(), at, json.RawMessage("null")))
	wantEqual(t, "value", get(), "null")
	for range 2 {
		must[any](t)(nil, c.DeleteValue(t.Context(), at))
		wantEqual(t, "value", get(), "")
	}
	var already []bool
	for _, request := range []string{nowhere, nowhere, "", ""} {
		already = append(already, must[bool](t)(c.AppendList(t.Context(), at, request, json.RawMessage("1"))))
	}
	wantEqual(t, "already", already, []bool{false, true, false, false})
	wantEqual(t, "list", read(), []string{"1", "1", "1"})
	wantRefusal(t, c.SetValue(t.Context(), at, json.RawMessage("1")), &store.KindTaken{Address: at, Kind: store.KindList})
	wantEqual(t, "value beside a list", get(), "")
	must[any](t)(nil, c.ClearList(t.Context(), at))
	wantEqual(t, "list", read(), nil)
	must[any](t)(nil, c.SetValue(t.Context(), at, json.RawMessage("1")))
	_, err := c.AppendList(t.Context(), at, "", json.RawMessage("2"))
	wantRefusal(t, err, &store.KindTaken{Address: at, Kind: store.KindValue})
	wantEqual(t, "list beside a value", read(), nil)
	for _, reserved := range []string{"pi", "pi.op.state", "drover.x"} {
		err := c.SetValue(t.Context(), store.Address{Namespace: reserved, Key: "k"}, json.RawMessage("1"))
		wantRefusal(t, err, &RemoteError{Code: "usage", Message: `the namespace "` + reserved + `" is drover's own`})
	}
	wantRefusal(t, c.SetValue(t.Context(), store.Address{}, json.RawMessage("1")), &RemoteError{Code: "usage", Message: "address has an empty namespace"})
	wantRefusal(t, c.SetValue(t.Context(), at, nil), &RemoteError{Code: "invalid_request", Message: "value is missing"})
}

func TestLaneSetOverTheSocket(t *testing.T) {
	h := newHouse(t, enginetest.Say("yes"))
	c := h.dial(t)
	model := message.ModelRef{Provider: "acme", ModelID: "two"}
	level := message.ThinkingHigh
	got := must[store.LaneConfiguration](t)(c.Configure(t.Context(), "", engine.Configure{Model: &model, ThinkingLevel: &level}))
	want := store.LaneConfiguration{Model: model, ThinkingLevel: level, ActiveToolNames: []string{}}
	wantEqual(t, "configuration", got, want)
	want.ActiveToolNames = []string{"b", "a"}
	for range 2 {
		got = must[store.LaneConfiguration](t)(c.Configure(t.Context(), "main", engine.Configure{ActiveToolNames: &[]string{"b", "a"}}))
		wantEqual(t, "configuration", got, want)
	}
	wantEqual(t, "stored", must[store.LaneConfiguration](t)(h.Lane.Configuration(t.Context())), want)
	want.ActiveToolNames = []string{}
	wantEqual(t, "none", must[store.LaneConfiguration](t)(c.Configure(t.Context(), "", engine.Configure{ActiveToolNames: &[]string{}})), want)
	wrong := message.ThinkingLevel("very")
	_, err := c.Configure(t.Context(), "", engine.Configure{ThinkingLevel: &wrong})
	var refused *RemoteError
	if !errors.As(err, &refused) || refused.Code != "usage" {
		t.Errorf("an unknown level: %v", err)
	}
}

func TestUsageOverTheSocket(t *testing.T) {
	h := newHouse(t, enginetest.Say("yes"))
	c := h.dial(t)
	u := store.NewUsage{Usage: message.Usage{Input: 5}, Details: json.RawMessage("{ \"why\": 1 }")}
	first := must[UsageReceipt](t)(c.RecordUsage(t.Context(), "", u))
	wantEqual(t, "receipt", first, UsageReceipt{UsageID: first.UsageID})
	u.ID = first.UsageID
	wantEqual(t, "repeat", must[UsageReceipt](t)(c.RecordUsage(t.Context(), "", u)), UsageReceipt{first.UsageID, true})
	// As if the first request had gone to an earlier owner.
	h.server.receipts = receipts{}
	wantEqual(t, "repeat elsewhere", must[UsageReceipt](t)(c.RecordUsage(t.Context(), "", u)), UsageReceipt{first.UsageID, true})
	entry := must[Placement](t)(c.Append(t.Context(), "", "", store.PendingEntry{Type: store.TypeCustom, CustomType: "x"}))
	u.ID = entry.EntryID
	_, err := c.RecordUsage(t.Context(), "", u)
	var refused *RemoteError
	if !errors.As(err, &refused) || refused.Code != "usage" {
		t.Errorf("an id that an entry has: %v", err)
	}
	_, err = c.RecordUsage(t.Context(), "", store.NewUsage{RawUsage: json.RawMessage(`{"input":"x"}`)})
	if !errors.As(err, &refused) || refused.Code != "usage" {
		t.Errorf("usage without numbers: %v", err)
	}
	rows := must[[]store.UsageRow](t)(h.Session.ScanUsage(t.Context(), store.UsageQuery{}))
	wantEqual(t, "rows", len(rows), 1)
	wantEqual(t, "details", string(rows[0].Details), `{"why":1}`)
	wantEqual(t, "adjustment", rows[0].Adjustment, true)
}

func TestInspectOverTheSocket(t *testing.T) {
	h := newHouse(t, enginetest.Reply{Chunks: []string{"half ", "an answer"}, Hang: true})
	id, ended := h.hang(t)
	c := h.dial(t)
	for _, lane := range []string{"", "main"} {
		all := must[[]LaneStatus](t)(c.Inspect(t.Context(), lane, true))
		report := must[engine.LaneReport](t)(h.Lane.Report(t.Context(), true))
		raw := must[[]byte](t)(report.AppendJSON(nil))
		wantEqual(t, "lanes", all, []LaneStatus{{Lane: "main", OperationID: id, Status: engine.StatusRunning, Raw: raw}})
		wantEqual(t, "partial answer", report.Snapshot.Streaming.Text(), "half an answer")
	}
	report := must[engine.LaneReport](t)(h.Lane.Report(t.Context(), false))
	wantEqual(t, "without a snapshot", string(must[[]LaneStatus](t)(c.Inspect(t.Context(), "", false))[0].Raw), string(must[[]byte](t)(report.AppendJSON(nil))))
	must[AbortResult](t)(c.Abort(t.Context(), "", id, false))
	<-ended
	all := must[[]LaneStatus](t)(c.Wait(t.Context(), ""))
	wantEqual(t, "idle", [2]any{len(all), all[0].OperationID}, [2]any{1, ""})
	if all[0].LastResult == nil {
		t.Error("no last result")
	}
}
