package engine

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// Check is the store.Check of operations: every open operation is complete and
// of its lane, every operation value has an open operation, and everything that
// waits for placement has an owner (spec §9.1, D7).
func Check(ctx context.Context, r store.Reader) iter.Seq[store.Problem] {
	return func(yield func(store.Problem) bool) {
		c := checker{owned: map[string]string{}, open: map[string]bool{}, frames: map[string]bool{}}
		if err := c.lanes(ctx, r); err != nil {
			yield(problem("unreadable", "lanes", "%v", err))
			return
		}
		if err := c.values(ctx, r); err != nil {
			yield(problem("unreadable", "values", "%v", err))
			return
		}
		for _, p := range c.problems {
			if !yield(p) {
				return
			}
		}
	}
}

type checker struct {
	open     map[string]bool   // operations that a lane names
	owned    map[string]string // pending entry id → its owner
	frames   map[string]bool   // keys of the frame lists that may exist
	problems []store.Problem
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
			continue
		}
		for _, id := range t.LaneState.PendingNextRun {
			c.owned[id] = "the next run of lane " + name
		}
		if t.State != nil {
			c.operation(name, t)
		}
	}
	return nil
}

func (c *checker) operation(lane string, t op.Turn) {
	id := t.Operation.OperationID
	where := "operation " + id
	c.open[id] = true
	if t.Operation.Lane != lane || string(t.LaneState.CurrentOperationID) != id {
		c.add("operation_mismatch", where, "lane %s names operation %s, whose data says %s on lane %s",
			lane, t.LaneState.CurrentOperationID, id, t.Operation.Lane)
	}
	if kind := op.KindOf(t.State); kind != t.Operation.Intent.Kind {
		c.add("operation_kind", where, "state of a %s under the intent of a %s", kind, t.Operation.Intent.Kind)
	}
	run, ok := t.Run()
	if !ok {
		return
	}
	for _, pending := range op.OwnedPending(run) {
		c.owned[pending] = where
	}
	if response := op.PendingResponse(run); response != "" {
		c.frames[id+":"+response] = true
	}
}

func (c *checker) values(ctx context.Context, r store.Reader) error {
	snap, err := r.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer snap.Close()
	for record, err := range snap.Records {
		if err != nil {
			return err
		}
		c.record(record)
	}
	return nil
}

func (c *checker) record(r store.Record) {
	where := r.Address.String()
	switch {
	case r.Kind == store.KindValue && r.Address.Namespace == "pi.pending.entry":
		if c.owned[r.Address.Key] == "" {
			c.add("unowned_pending", where, "pending content that nothing owns")
		}
	case r.Kind == store.KindList && r.Address.Namespace == "pi.pending.assistant_frame":
		if !c.frames[r.Address.Key] {
			c.frames[r.Address.Key] = true // once
			c.add("unowned_frames", where, "frames of a response that is not pending")
		}
	case r.Kind == store.KindValue && operationOwned(r.Address.Namespace):
		id, _, _ := strings.Cut(r.Address.Key, ":")
		if !c.open[id] {
			c.add("unowned_operation_value", where, "value of an operation that is not open")
		}
	case r.Kind == store.KindEntry && c.owned[r.Entry.ID] != "":
		c.add("placed_twice", "entry "+r.Entry.ID, "placed while it still waits for %s", c.owned[r.Entry.ID])
	}
}

func operationOwned(namespace string) bool {
	return strings.HasPrefix(namespace, "pi.op.") || namespace == "pi.pending.tool_output"
}
