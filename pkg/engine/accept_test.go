package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// A refusal names what is wrong and writes nothing (§3.6, D40).
func TestAcceptRefusals(t *testing.T) {
	unknown := message.ModelRef{Provider: "acme", ModelID: "on"}
	high := message.ThinkingHigh
	tests := []struct {
		name    string
		request engine.Request
		tag     string
		text    string
	}{
		{"nothing to send", engine.Request{}, "InvalidMessage", "invalid message: there is nothing to send: the prompt is empty"},
		{"white space only", engine.Request{Text: " \n"}, "InvalidMessage", "invalid message: message field content is empty"},
		{"text that is not UTF-8", engine.Request{Text: "a\xffb"}, "InvalidMessage", "UTF-8"},
		{"no message", engine.Request{Messages: []message.Message{[]byte(`{"role":`)}}, "InvalidMessage", "invalid message: "},
		{"an unknown role", engine.Request{Messages: []message.Message{[]byte(`{"role":"nobody"}`)}}, "InvalidMessage", `role "nobody" is unknown`},
		{"an answer that has not ended", engine.Request{Messages: []message.Message{[]byte(`{"role":"assistant","content":[],"stopReason":"pending"}`)}}, "InvalidMessage", "pending"},
		{"an id that is none", engine.Request{OperationID: "op-1", Text: "x"}, "InvalidMessage", `operation id "op-1" is no UUID`},
		{"an id of another version", engine.Request{OperationID: "9f1c2d3e-0000-4000-8000-000000000000", Text: "x"}, "InvalidMessage", "version 4, not 7"},
		{"an unknown model", engine.Request{Text: "x", Configure: engine.Configure{Model: &unknown}}, "MissingIdentities", "model acme/on is not registered"},
		{"an unknown tool", engine.Request{Text: "x", Configure: engine.Configure{ActiveToolNames: &[]string{"read"}}}, "MissingIdentities", "tools not registered: read"},
		{
			"the setters of a refused prompt",
			engine.Request{Configure: engine.Configure{ThinkingLevel: &high}}, "InvalidMessage", "empty",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := enginetest.InMemory(t)
			w.Open()
			before := w.Records()
			a, err := w.Lane.Accept(t.Context(), tt.request)
			var tagged interface{ Tag() string }
			if !errors.As(err, &tagged) || tagged.Tag() != tt.tag || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v, want %s: %s", err, tt.tag, tt.text)
			}
			enginetest.Equal(t, "admission", a, engine.Admission{})
			enginetest.Equal(t, "what the refusal wrote", w.Records(), before)
		})
	}
}

func TestAcceptBusy(t *testing.T) {
	w := enginetest.InMemory(t)
	w.Open()
	id := w.Accept("one")
	before := w.Records()
	_, err := w.Lane.Accept(t.Context(), engine.Request{Text: "two"})
	var busy *engine.LaneBusy
	if !errors.As(err, &busy) || *busy != (engine.LaneBusy{Lane: "main", OperationID: id, Kind: op.KindRun}) {
		t.Errorf("got %v", err)
	}
	enginetest.Equal(t, "what the refusal wrote", w.Records(), before)
}

// An acceptance takes the caller's id, stamps what has no time, keeps what has
// one, and names the caller's messages only.
func TestAccept(t *testing.T) {
	w := enginetest.InMemory(t)
	w.Open()
	const id = "018bcfe5-6800-7000-8000-0000000000aa"
	image := message.Block{Type: message.BlockImage, Data: "AAAA", MimeType: "image/png"}
	a, err := w.Lane.Accept(t.Context(), engine.Request{
		OperationID: id, Text: "see", Images: []message.Block{image},
		Messages: []message.Message{[]byte(`{ "role":"user", "content":"caf\u00e9", "n":1.0, "timestamp":5 }`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	enginetest.Equal(t, "admission", a, engine.Admission{OperationID: id, Kind: op.KindRun, StartedAt: enginetest.Start})
	meta, _, err := store.Get(t.Context(), w.View(), op.Meta(id))
	if err != nil {
		t.Fatal(err)
	}
	found, err := w.View().Entries(t.Context(), meta.Value.Intent.PromptEntryIDs)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, id := range meta.Value.Intent.PromptEntryIDs {
		got = append(got, string(found[id].Message()))
	}
	enginetest.Equal(t, "prompt", got, []string{
		`{"role":"user","content":[{"type":"text","text":"see"},{"type":"image","data":"AAAA","mimeType":"image/png"}],"timestamp":1700000000000}`,
		`{"role":"user","content":"caf\u00e9","n":1.0,"timestamp":5}`,
	})
}

// What waits for the next run is placed before the prompt, whatever it is, and
// lets an empty request through (§3.6).
func TestAcceptNextRun(t *testing.T) {
	w := enginetest.InMemory(t)
	w.Open()
	queue := func(entries map[string]store.PendingEntry, ids ...string) {
		t.Helper()
		err := w.Session.Mutate(t.Context(), "main", func(m *store.Mutator) error {
			var tx store.Tx
			for _, id := range ids {
				tx = append(tx, store.Pending(id).Set(entries[id]))
			}
			_, err := m.Commit(append(tx, store.LaneStateOf("main").Set(store.LaneState{PendingNextRun: ids})))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	said := func(text string) store.PendingEntry {
		return store.PendingEntry{Type: store.TypeMessage, Payload: []byte(message.NewUser(text, nil, 1))}
	}
	entries := map[string]store.PendingEntry{
		"n1": said("queued"), "n2": {Type: store.TypeCustom, CustomType: "app.note", Payload: []byte(`{"a":1.0}`)}, "n3": said("only"),
	}
	queue(entries, "n1", "n2")
	w.Prompt("hi")
	queue(entries, "n3")
	if _, err := w.Lane.Prompt(t.Context(), engine.Request{}); err != nil {
		t.Fatal(err)
	}
	w.Settled()
	talk, _ := w.End()
	var got []string
	for _, s := range talk {
		got = append(got, string(s.Role)+" "+s.Text)
	}
	enginetest.Equal(t, "conversation", got, []string{"user queued", " ", "user hi", "assistant hello you", "user only", "assistant hello you"})
}

// Main of a session that was made without a configuration takes the seed with its
// first accepted operation, not before (D40); later seeds change nothing.
func TestSeed(t *testing.T) {
	w := enginetest.Unconfigured(t)
	w.Options.Seed = store.LaneConfiguration{Model: enginetest.Ref}
	w.Open()
	want := store.LaneConfiguration{Model: enginetest.Ref, ThinkingLevel: message.ThinkingOff, ActiveToolNames: []string{}}
	wantConfig := func(when string) {
		t.Helper()
		cfg, err := w.Lane.Configuration(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		enginetest.Equal(t, "configuration "+when, cfg, want)
	}
	wantConfig("before the first operation")
	if _, ok, err := store.Get(t.Context(), w.View(), store.LaneConfig("main")); ok || err != nil {
		t.Errorf("opening wrote the configuration: %t, %v", ok, err)
	}
	if _, err := w.Lane.Accept(t.Context(), engine.Request{}); err == nil {
		t.Error("an empty prompt was accepted")
	}
	if _, ok, _ := store.Get(t.Context(), w.View(), store.LaneConfig("main")); ok {
		t.Error("a refused prompt wrote the configuration")
	}
	w.Prompt("hi")
	w.Settled()
	w.Options.Seed.Model = message.ModelRef{Provider: "other", ModelID: "x"}
	w.Reopen()
	wantConfig("after it, under another seed")
}

// The configuration's setters tell what they changed, and only that (§5.5).
func TestConfigure(t *testing.T) {
	w := enginetest.InMemory(t)
	other := message.ModelRef{Provider: "acme", ModelID: `t"wo`}
	w.AddModel(effect.ModelInfo{Ref: other})
	w.Open()
	var events []op.Event
	off := w.Harness.On(func(e op.Event) { events = append(events, e) })
	set := func(c engine.Configure) {
		t.Helper()
		if err := w.Lane.Configure(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	low, tools := message.ThinkingLow, []string{"read", "bash"}
	set(engine.Configure{})
	set(engine.Configure{Model: &enginetest.Ref})
	set(engine.Configure{Model: &other, ThinkingLevel: &low, ActiveToolNames: &tools})
	off()
	set(engine.Configure{Model: &enginetest.Ref})
	event := func(property, value, previous string) op.Event {
		return op.Event{Type: op.EventConfigUpdate, Lane: "main", Property: property, Value: []byte(value), Previous: []byte(previous)}
	}
	enginetest.Equal(t, "events", events, []op.Event{
		event("model", `{"provider":"acme","modelId":"t\"wo"}`, `{"provider":"acme","modelId":"one"}`),
		event("thinkingLevel", `"low"`, `"off"`),
		event("activeTools", `["read","bash"]`, `[]`),
	})
	cfg, err := w.Lane.Configuration(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	enginetest.Equal(t, "configuration", cfg, store.LaneConfiguration{Model: enginetest.Ref, ThinkingLevel: low, ActiveToolNames: tools})
}

func TestOptionsRefused(t *testing.T) {
	w := enginetest.InMemory(t)
	w.Open()
	good := engine.Options{Session: w.Session, Models: w.Models}
	for name, change := range map[string]func(*engine.Options){
		"no session":                 func(o *engine.Options) { o.Session = nil },
		"no models":                  func(o *engine.Options) { o.Models = nil },
		"a negative number of tries": func(o *engine.Options) { o.Retry.MaxRetries = -1 },
		"tries beyond counting":      func(o *engine.Options) { o.Retry.MaxRetries = op.MaxSafeInteger },
		"a negative delay":           func(o *engine.Options) { o.Retry.BaseDelayMs = -1 },
		"a negative longest delay":   func(o *engine.Options) { o.Retry.MaxDelayMs = -1 },
		"a negative reserve":         func(o *engine.Options) { o.Compaction.ReserveTokens = -1 },
		"a negative rest":            func(o *engine.Options) { o.Compaction.KeepRecentTokens = -1 },
		"an unknown steering mode":   func(o *engine.Options) { o.SteeringMode = "some" },
		"an unknown follow-up mode":  func(o *engine.Options) { o.FollowUpMode = "some" },
		"an unknown tool execution":  func(o *engine.Options) { o.ToolExecution = "some" },
	} {
		o := good
		change(&o)
		if _, err := engine.New(t.Context(), o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestLaneNotFound(t *testing.T) {
	w := enginetest.InMemory(t)
	w.Open()
	_, err := w.Harness.Lane("side")
	var missing *engine.LaneNotFound
	if !errors.As(err, &missing) || !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("got %v", err)
	}
	enginetest.Equal(t, "refusal", *missing, engine.LaneNotFound{Lane: "side", Known: []string{"main"}})
}
