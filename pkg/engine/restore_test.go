package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// reading is a backend that notes what is read.
type reading struct {
	store.Backend
	note func(string)
}

func (b reading) Value(ctx context.Context, a store.Address) (store.StoredValue, bool, error) {
	b.note(a.Namespace)
	return b.Backend.Value(ctx, a)
}

func (b reading) ScanValues(ctx context.Context, a store.Address) ([]store.StoredValue, error) {
	b.note("scan " + a.String())
	return b.Backend.ScanValues(ctx, a)
}

func (b reading) Entries(ctx context.Context, ids []string) (map[string]store.Entry, error) {
	b.note("entries")
	return b.Backend.Entries(ctx, ids)
}

func (b reading) ReadList(ctx context.Context, a store.Address, q store.ListQuery) ([]store.ListElement, error) {
	b.note("list " + a.Namespace)
	return b.Backend.ReadList(ctx, a, q)
}

func (b reading) ScanBranch(ctx context.Context, q store.BranchQuery) ([]store.Entry, error) {
	b.note("branch")
	return b.Backend.ScanBranch(ctx, q)
}

func (b reading) ScanEntries(ctx context.Context, q store.EntryQuery) ([]store.Entry, error) {
	b.note("scan entries")
	return b.Backend.ScanEntries(ctx, q)
}

func (b reading) ScanUsage(ctx context.Context, q store.UsageQuery) ([]store.UsageRow, error) {
	b.note("scan usage")
	return b.Backend.ScanUsage(ctx, q)
}

func (b reading) Snapshot(ctx context.Context) (*store.Snapshot, error) {
	b.note("snapshot")
	return b.Backend.Snapshot(ctx)
}

// Restore is the lane inventory and five lookups per open lane: no branch, no
// list, no entry, and nothing is written or started (§4.4).
func TestRestore(t *testing.T) {
	for _, tt := range []struct {
		name string
		dies int // after this commit, 0 not at all
		want []string
	}{
		{"an open run", 7, []string{"pi.lane.config", "pi.lane.leaf", "pi.lane.state", "pi.op.meta", "pi.op.state", "scan pi.lane.leaf"}},
		{"an idle lane", 0, []string{"pi.lane.config", "pi.lane.leaf", "pi.lane.state", "scan pi.lane.leaf"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := enginetest.InMemory(t)
			w.OpenUntil(tt.dies)
			id := w.Accept("hi")
			if tt.dies > 0 {
				w.Die(id)
			} else {
				w.Drive(engine.DriveOptions{OperationID: id})
			}
			_ = w.Harness.Close()
			before, requests := w.Records(), len(w.Model.Requests())
			var reads []string
			w.Decorate = func(b store.Backend) store.Backend {
				return reading{b, func(what string) { reads = append(reads, what) }}
			}
			w.Open()
			slices.Sort(reads)
			enginetest.Equal(t, "reads", reads, tt.want)
			enginetest.Equal(t, "what the restore wrote", w.Records(), before)
			if n := len(w.Model.Requests()); n != requests {
				t.Errorf("the restore made %d requests", n-requests)
			}
		})
	}
}

// A projection with a hole is refused by name, at once (§3.3); what a state names
// is asked for where it is used.
func TestRestoreRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		hole func(id string) store.Write
		want string
	}{
		{"no lane state", func(string) store.Write { return store.LaneStateOf("main").Delete() }, "pi.lane.state/main is missing"},
		{"no leaf, so no main", func(string) store.Write { return store.LaneLeaf("main").Delete() }, "the session has no main lane"},
		{"no configuration", func(string) store.Write { return store.LaneConfig("main").Delete() }, "pi.lane.config/main is missing"},
		{"no acceptance data", func(id string) store.Write { return op.Meta(id).Delete() }, "is missing"},
		{"no state", func(id string) store.Write { return op.StateOf(id).Delete() }, "is missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := enginetest.InMemory(t)
			w.Open()
			id := w.Accept("hi")
			commit(t, w, tt.hole(id))
			_, err := engine.New(t.Context(), engine.Options{Session: w.Session, Models: w.Models})
			var defect *engine.Defect
			if !errors.As(err, &defect) || defect.Lane != "main" || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want a defect: %s", err, tt.want)
			}
		})
	}
}

func commit(t *testing.T, w *enginetest.World, writes ...store.Write) {
	t.Helper()
	err := w.Session.Mutate(t.Context(), "main", func(m *store.Mutator) error {
		_, err := m.Commit(writes)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What a state names and is not there is a defect of the procedure that uses it,
// and faults nothing.
func TestDefectsAtConsumption(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(id string) []store.Write
	}{
		{"a prompt entry", func(id string) []store.Write {
			return []store.Write{op.Meta(id).Set(op.Operation{OperationID: id, Lane: "main", Intent: op.Intent{Kind: op.KindRun, PromptEntryIDs: []string{strayID}}})}
		}},
		{"the configuration", func(string) []store.Write { return []store.Write{store.LaneConfig("main").Delete()} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := enginetest.InMemory(t)
			manual(w)
			w.Options.Manual = false
			w.Open()
			id := w.Accept("hi")
			commit(t, w, tt.damage(id)...)
			_, err := w.Lane.Drive(t.Context(), engine.DriveOptions{OperationID: id})
			var defect *engine.Defect
			if !errors.As(err, &defect) || w.Session.Fault() != nil {
				t.Errorf("got %v, fault %v", err, w.Session.Fault())
			}
			if n := len(w.Model.Requests()); n != 0 {
				t.Errorf("%d requests", n)
			}
		})
	}
}
