package engine

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// Check is the store.Check of operations: every open operation is complete, of
// its lane and readable, what it names is there and what it reserved is not,
// every operation value has an open operation, and everything that waits for
// placement has an owner (spec §9.1, D7).
func Check(ctx context.Context, r store.Reader) store.Inspection {
	c := &checker{
		open: map[string]bool{}, waiting: map[string]*waiting{}, frames: map[string]bool{},
		reserved: map[string]string{}, named: map[string]string{},
	}
	if err := c.lanes(ctx, r); err != nil {
		return unreadable{problem("unreadable", "lanes", "%v", err)}
	}
	return c
}

// unreadable is a check that could not begin.
type unreadable struct{ found store.Problem }

func (unreadable) Record(*store.Record) {}

func (u unreadable) Problems() iter.Seq[store.Problem] {
	return func(yield func(store.Problem) bool) { yield(u.found) }
}

// Problems tells what was found among the records, and what was not.
func (c *checker) Problems() iter.Seq[store.Problem] {
	c.absences()
	return slices.Values(c.problems)
}

type checker struct {
	open     map[string]bool     // operations that a lane names
	waiting  map[string]*waiting // pending entries by id
	frames   map[string]bool     // keys of the frame lists that may exist
	reserved map[string]string   // ids that must still be free → by whom
	named    map[string]string   // entries that must exist → for whom
	problems []store.Problem
}

// waiting is content that somebody says waits for its placement.
type waiting struct {
	owner string
	found bool
}

func problem(code, where, format string, args ...any) store.Problem {
	return store.Problem{Code: code, Severity: store.SeverityError, Message: fmt.Sprintf(format, args...), Where: where}
}

func (c *checker) add(code, where, format string, args ...any) {
	c.problems = append(c.problems, problem(code, where, format, args...))
}

func (c *checker) lanes(ctx context.Context, r store.Reader) error {
	names, err := LaneNames(ctx, r)
	if err != nil {
		return err
	}
	for _, name := range names {
		t, err := loadTurn(ctx, r, name, 0)
		if err != nil {
			c.add("broken_operation", "lane "+name, "%v", err)
			c.open[string(t.LaneState.CurrentOperationID)] = true // told once
			continue
		}
		c.owns("the next run of lane "+name, t.LaneState.PendingNextRun)
		if t.State != nil {
			c.operation(ctx, r, t)
		}
	}
	return nil
}

func (c *checker) owns(owner string, ids []string) {
	for _, id := range ids {
		c.waiting[id] = &waiting{owner: owner}
	}
}

func (c *checker) operation(ctx context.Context, r store.Reader, t op.Turn) {
	id, data := string(t.LaneState.CurrentOperationID), t.Operation
	where := "operation " + id
	c.open[id] = true
	if data.Lane != t.Lane || data.OperationID != id {
		c.add("operation_mismatch", where, "lane %s names it, its data says %s on lane %s", t.Lane, data.OperationID, data.Lane)
	}
	if kind := op.KindOf(t.State); kind != data.Intent.Kind {
		c.add("operation_kind", where, "state of a %s under the intent of a %s", kind, data.Intent.Kind)
	}
	c.names(where, string(data.SourceLeafID))
	c.names(where, data.Intent.PromptEntryIDs...)
	run, ok := t.Run()
	if !ok {
		return
	}
	c.owns(where, op.OwnedPending(run))
	c.names(where, string(run.LatestAssistantEntryID))
	c.phase(where, run.Phase)
	if response := op.PendingResponse(run); response != "" {
		c.frames[id+":"+response] = true
		if _, err := reduceFrames(ctx, r, id, response); err != nil {
			c.add("bad_frames", where, "%v", err)
		}
	}
}

// phase notes which entries a run's phase names and which ids it reserves.
func (c *checker) phase(where string, p op.Phase) {
	switch p := p.(type) {
	case op.Checkpoint:
		c.names(where, p.TriggerEntryID)
	case op.Assistant:
		if g, ok := p.Generation.(op.EffectPending); ok {
			c.reserves(where, g.ResponseEntryID, g.UsageID)
		}
	case op.Tools:
		c.names(where, p.Batch.AssistantEntryID)
		for _, call := range p.Batch.Calls {
			if call.Status == op.CallCompleted {
				c.names(where, call.ResultEntryID)
			} else {
				c.reserves(where, call.ResultEntryID)
			}
		}
	case op.DeferredPhase:
		c.names(where, p.Deferred.SourceEntryID)
		c.reserves(where, p.Deferred.ResponseEntryID, p.Deferred.UsageID)
	case op.InRunCompaction:
		c.names(where, p.ResumeAfter.TriggerEntryID)
	case op.FailureDrain:
		c.names(where, p.Provenance.EntryID)
	}
}

func (c *checker) names(where string, ids ...string) {
	for _, id := range ids {
		if id != "" {
			c.named[id] = where
		}
	}
}

func (c *checker) reserves(where string, ids ...string) {
	for _, id := range ids {
		if id != "" {
			c.reserved[id] = where
		}
	}
}

// Record compares the next record with what the operations say.
func (c *checker) Record(r *store.Record) {
	switch r.Kind {
	case store.KindEntry:
		c.entry(r.Entry.ID)
	case store.KindUsage:
		if by := c.reserved[r.Usage.ID]; by != "" {
			c.add("reserved_taken", "usage row "+r.Usage.ID, "its id is still reserved by %s", by)
		}
	case store.KindValue:
		c.value(r.Address)
	case store.KindList:
		if r.Address.Namespace == "pi.pending.assistant_frame" && !c.frames[r.Address.Key] {
			c.frames[r.Address.Key] = true // told once
			c.add("unowned_frames", r.Address.String(), "frames of a response that is not pending")
		}
	}
}

func (c *checker) entry(id string) {
	delete(c.named, id)
	if by := c.reserved[id]; by != "" {
		c.add("reserved_taken", "entry "+id, "its id is still reserved by %s", by)
	}
	if w := c.waiting[id]; w != nil {
		w.found = true
		c.add("placed_twice", "entry "+id, "placed while it still waits for %s", w.owner)
	}
}

func (c *checker) value(a store.Address) {
	switch {
	case a.Namespace == "pi.pending.entry":
		if w := c.waiting[a.Key]; w != nil {
			w.found = true
		} else {
			c.add("unowned_pending", a.String(), "pending content that nothing owns")
		}
	case operationOwned(a.Namespace):
		if id, _, _ := strings.Cut(a.Key, ":"); !c.open[id] {
			c.add("unowned_operation_value", a.String(), "value of an operation that is not open")
		}
	}
}

func operationOwned(namespace string) bool {
	return strings.HasPrefix(namespace, "pi.op.") || namespace == "pi.pending.tool_output"
}

// absences tells what should have been among the records.
func (c *checker) absences() {
	for _, id := range slices.Sorted(maps.Keys(c.named)) {
		c.add("missing_entry", c.named[id], "names entry %s, which does not exist", id)
	}
	for _, id := range slices.Sorted(maps.Keys(c.waiting)) {
		if w := c.waiting[id]; !w.found {
			c.add("missing_pending", w.owner, "content %s, which should wait for it, does not exist", id)
		}
	}
}
