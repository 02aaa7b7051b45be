package engine_test

import (
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/memory"
)

// sick is a session whose process died while a request was under way, with
// damage done to it by hand.
type sick struct {
	t       *testing.T
	records []store.Record
	id      string // of the open operation
	pending op.EffectPending
	prompt  string // its entry's id
}

func newSick(t *testing.T) *sick {
	w := enginetest.InMemory(t)
	w.Open()
	w.Prompt("before")
	w.Decorate = nil
	_ = w.Harness.Close()
	w.OpenUntil(7)
	id := w.Accept("hi")
	w.Die(id)
	run := state(t, w, id).(op.RunState)
	g := run.Phase.(op.Assistant).Generation.(op.EffectPending)
	return &sick{t: t, records: w.Records(), id: id, pending: g, prompt: g.Context.TriggerEntryID}
}

// commit applies writes to the records as a storage would, except that nothing is
// checked.
func (s *sick) commit(writes ...store.Write) {
	s.t.Helper()
	records, _, err := store.Prepare(writes, store.Base{
		NextSeq: s.records[len(s.records)-1].Seq + 1, Now: enginetest.Start,
		Lookup: func(id string) (store.IDKind, error) {
			if id == s.prompt {
				return store.IDEntry, nil
			}
			return store.IDFree, nil
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range records {
		if r.Kind == store.KindValue || r.Op == store.OpDelete {
			s.drop(r.Kind, r.Address)
		}
		if r.Op != store.OpDelete {
			s.records = append(s.records, r)
		}
	}
}

func (s *sick) drop(kind store.WriteKind, a store.Address) {
	var kept []store.Record
	for _, r := range s.records {
		if r.Kind != kind || r.Address != a {
			kept = append(kept, r)
		}
	}
	s.records = kept
}

// change rewrites the operation's state.
func (s *sick) change(edit func(*op.RunState)) {
	s.t.Helper()
	run := op.RunState{
		Control: op.Control{Status: op.Running}, Settings: op.Settings{SteeringMode: op.QueueAll, FollowUpMode: op.QueueAll, ToolExecution: op.Parallel},
		Phase: op.Assistant{Generation: s.pending},
	}
	edit(&run)
	s.commit(op.StateOf(s.id).Set(run))
}

func (s *sick) dropEntry(id string) {
	var kept []store.Record
	for _, r := range s.records {
		if r.Entry == nil || r.Entry.ID != id {
			kept = append(kept, r)
		}
	}
	s.records = kept
}

// inspect shows the check every record.
func inspect(t *testing.T, r store.Reader) store.Inspection {
	t.Helper()
	check := engine.Check(t.Context(), r)
	snap, err := r.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	for record, err := range snap.Skeleton() {
		if err != nil {
			t.Fatal(err)
		}
		check.Record(&record)
	}
	return check
}

func (s *sick) check() []string {
	s.t.Helper()
	d := &memory.Driver{}
	h := store.Header{ID: "sick", StorageVersion: store.StorageVersion, CreatedAt: enginetest.Start, Generation: 1}
	if err := d.Build(s.t.Context(), "/sick", store.NewSnapshot(h, s.records), store.BuildOptions{}); err != nil {
		s.t.Fatal(err)
	}
	r, err := d.View(s.t.Context(), "/sick")
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Close()
	var codes []string
	for p := range inspect(s.t, r).Problems() {
		codes = append(codes, p.Code+" "+p.Where)
		if p.Severity != store.SeverityError || p.Message == "" {
			s.t.Errorf("incomplete problem %+v", p)
		}
	}
	return codes
}

const strayID = "018bcfe5-6800-7fff-8000-000000000000"

// Every code of the check, each by the damage that deserves it.
func TestCheck(t *testing.T) {
	text := store.PendingEntry{Type: store.TypeMessage, Payload: []byte(message.NewUser("x", nil, 1))}
	operation := func(s *sick) string { return "operation " + s.id }
	tests := []struct {
		name   string
		damage func(*sick)
		want   func(*sick) []string
	}{
		{"no damage", func(*sick) {}, func(*sick) []string { return nil }},
		{
			"no lanes", func(s *sick) { s.drop(store.KindValue, store.LaneLeaf("main").Address()) },
			func(*sick) []string { return []string{"unreadable lanes"} },
		},
		{
			"no acceptance data", func(s *sick) { s.commit(op.Meta(s.id).Delete()) },
			func(s *sick) []string {
				return []string{"broken_operation lane main", "unowned_frames pi.pending.assistant_frame/" + s.id + ":" + s.pending.ResponseEntryID}
			},
		},
		{
			"a state that cannot be read", func(s *sick) {
				s.commit(store.NewValue[map[string]string]("pi.op.state", s.id).Set(map[string]string{"kind": "later"}))
			},
			func(s *sick) []string {
				return []string{"broken_operation lane main", "unowned_frames pi.pending.assistant_frame/" + s.id + ":" + s.pending.ResponseEntryID}
			},
		},
		{
			"acceptance data of another lane", func(s *sick) {
				s.commit(op.Meta(s.id).Set(op.Operation{OperationID: s.id, Lane: "side", Intent: op.Intent{Kind: op.KindRun}}))
			},
			func(s *sick) []string { return []string{"operation_mismatch " + operation(s)} },
		},
		{
			"acceptance data of another operation", func(s *sick) {
				s.commit(op.Meta(s.id).Set(op.Operation{OperationID: strayID, Lane: "main", Intent: op.Intent{Kind: op.KindRun}}))
			},
			func(s *sick) []string { return []string{"operation_mismatch " + operation(s)} },
		},
		{
			"an intent of another kind", func(s *sick) {
				s.commit(op.Meta(s.id).Set(op.Operation{OperationID: s.id, Lane: "main", Intent: op.Intent{Kind: op.KindCompaction}}))
			},
			func(s *sick) []string { return []string{"operation_kind " + operation(s)} },
		},
		{
			"two lanes, one operation", func(s *sick) {
				s.commit(store.LaneLeaf("side").Set(""), store.LaneStateOf("side").Set(store.LaneState{CurrentOperationID: store.LeafID(s.id)}))
			},
			func(s *sick) []string { return []string{"operation_mismatch " + operation(s)} },
		},
		{
			"a second operation of a lane", func(s *sick) {
				s.commit(op.StateOf(strayID).Set(op.RunState{Control: op.Control{Status: op.Running}, Phase: op.Starting{}}))
			},
			func(*sick) []string { return []string{"unowned_operation_value pi.op.state/" + strayID} },
		},
		{
			"tool output of an operation that is gone", func(s *sick) {
				s.commit(store.NewValue[int]("pi.pending.tool_output", strayID+":x").Set(1))
			},
			func(*sick) []string {
				return []string{"unowned_operation_value pi.pending.tool_output/" + strayID + ":x"}
			},
		},
		{
			"frames of another response, told once", func(s *sick) {
				s.commit(op.Frames(s.id, strayID).Append(message.Frame(`{}`)), op.Frames(s.id, strayID).Append(message.Frame(`{}`)))
			},
			func(s *sick) []string {
				return []string{"unowned_frames pi.pending.assistant_frame/" + s.id + ":" + strayID}
			},
		},
		{
			"frames that contradict each other", func(s *sick) {
				s.commit(op.Frames(s.id, s.pending.ResponseEntryID).Append(message.Frame(`{"type":"text_delta","contentIndex":7,"delta":"x"}`)))
			},
			func(s *sick) []string { return []string{"bad_frames " + operation(s)} },
		},
		{
			"the answer is there before its settlement", func(s *sick) {
				s.commit(store.InsertEntry(store.MessageEntry(s.pending.ResponseEntryID, s.prompt, message.NewUser("x", nil, 1))))
			},
			func(s *sick) []string { return []string{"reserved_taken entry " + s.pending.ResponseEntryID} },
		},
		{
			"the usage row is there before its settlement", func(s *sick) { s.commit(store.InsertUsage(store.NewUsage{ID: s.pending.UsageID})) },
			func(s *sick) []string { return []string{"reserved_taken usage row " + s.pending.UsageID} },
		},
		{
			"the prompt is gone", func(s *sick) { s.dropEntry(s.prompt) },
			func(s *sick) []string { return []string{"missing_entry " + operation(s)} },
		},
		{
			"the newest answer is gone", func(s *sick) { s.change(func(r *op.RunState) { r.LatestAssistantEntryID = strayID }) },
			func(s *sick) []string { return []string{"missing_entry " + operation(s)} },
		},
		{
			"a checkpoint after an entry that is gone", func(s *sick) {
				s.commit(op.Frames(s.id, s.pending.ResponseEntryID).Delete())
				s.change(func(r *op.RunState) {
					r.Phase = op.Checkpoint{Continuation: op.NeedAssistant(false), TriggerEntryID: strayID}
				})
			},
			func(s *sick) []string { return []string{"missing_entry " + operation(s)} },
		},
		{
			"what the other phases name and reserve", func(s *sick) {
				s.commit(op.Frames(s.id, s.pending.ResponseEntryID).Delete())
				s.commit(store.InsertEntry(store.MessageEntry(strayID, s.prompt, message.NewUser("x", nil, 1))))
				s.change(func(r *op.RunState) {
					r.Phase = op.Tools{Batch: op.ToolBatch{AssistantEntryID: "gone1", Calls: []op.ToolCall{
						{Status: op.CallCompleted, ResultEntryID: "gone2"}, {Status: op.CallPlanned, ResultEntryID: strayID},
					}}}
				})
			},
			func(s *sick) []string {
				return []string{"reserved_taken entry " + strayID, "missing_entry " + operation(s), "missing_entry " + operation(s)}
			},
		},
		{
			"a poll whose source is gone", func(s *sick) {
				s.commit(op.Frames(s.id, s.pending.ResponseEntryID).Delete())
				s.change(func(r *op.RunState) {
					r.Phase = op.DeferredPhase{Deferred: op.Deferred{Status: op.DeferredEffectPending, SourceEntryID: strayID, ResponseEntryID: s.prompt, UsageID: "u"}}
				})
			},
			func(s *sick) []string {
				return []string{"reserved_taken entry " + s.prompt, "missing_entry " + operation(s)}
			},
		},
		{
			"a compaction that resumes after nothing", func(s *sick) {
				s.commit(op.Frames(s.id, s.pending.ResponseEntryID).Delete())
				s.change(func(r *op.RunState) {
					r.Phase = op.InRunCompaction{Structural: op.Structural{TaskID: "t"}, ResumeAfter: op.Checkpoint{Continuation: op.NeedAssistant(true), TriggerEntryID: strayID}}
				})
			},
			func(s *sick) []string { return []string{"missing_entry " + operation(s)} },
		},
		{
			"a failure by an answer that is gone", func(s *sick) {
				s.commit(op.Frames(s.id, s.pending.ResponseEntryID).Delete())
				s.change(func(r *op.RunState) {
					r.Phase = op.FailureDrain{Provenance: op.Provenance{Kind: op.FromResponse, EntryID: strayID}}
				})
			},
			func(s *sick) []string { return []string{"missing_entry " + operation(s)} },
		},
		{
			"pending content of nobody", func(s *sick) { s.commit(store.Pending(strayID).Set(text)) },
			func(*sick) []string { return []string{"unowned_pending pi.pending.entry/" + strayID} },
		},
		{
			"queued content that is gone", func(s *sick) { s.change(func(r *op.RunState) { r.Inbox.Steer = []string{strayID} }) },
			func(s *sick) []string { return []string{"missing_pending " + operation(s)} },
		},
		{
			"next-run content that is gone", func(s *sick) {
				s.commit(store.LaneStateOf("main").Set(store.LaneState{CurrentOperationID: store.LeafID(s.id), PendingNextRun: []string{strayID}}))
			},
			func(*sick) []string { return []string{"missing_pending the next run of lane main"} },
		},
		{
			"queued content that is there", func(s *sick) {
				s.change(func(r *op.RunState) { r.Inbox.Writes = []string{strayID} })
				s.commit(store.Pending(strayID).Set(text))
			},
			func(*sick) []string { return nil },
		},
		{
			"queued content that was placed already", func(s *sick) {
				s.change(func(r *op.RunState) { r.Inbox.Steer = []string{s.prompt} })
				s.commit(store.Pending(s.prompt).Set(text))
			},
			func(s *sick) []string { return []string{"placed_twice entry " + s.prompt} },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSick(t)
			tt.damage(s)
			enginetest.Equal(t, "problems", s.check(), tt.want(s))
		})
	}
}

// A caller that has seen enough stops the check.
func TestCheckStops(t *testing.T) {
	s := newSick(t)
	s.commit(store.Pending("a").Set(store.PendingEntry{Type: store.TypeCustom, CustomType: "x"}), store.Pending("b").Set(store.PendingEntry{Type: store.TypeCustom, CustomType: "x"}))
	if codes := s.check(); len(codes) != 2 {
		t.Fatalf("%v", codes)
	}
	d := &memory.Driver{}
	if err := d.Build(t.Context(), "/sick", store.NewSnapshot(store.Header{ID: "sick", StorageVersion: 1}, s.records), store.BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	r, err := d.View(t.Context(), "/sick")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for range inspect(t, r).Problems() {
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d problems", n)
	}
}
