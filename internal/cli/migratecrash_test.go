package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/migrate"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/sqlite"
)

// TestB50MigratesEveryState: the crash matrix of the engine, where every process
// finds its session as storage version 1 left it and migrates it. Whatever an
// operation was about, it comes to the end that it has without (spec §7.4).
func TestB50MigratesEveryState(t *testing.T) {
	encodings := []struct {
		name   string
		driver store.Driver
		short  enginetest.CrashPlan
	}{
		{"jsonl", jsonl.Driver{}, enginetest.CrashPlan{Cases: 2, Commits: 8}},
		{"sqlite", sqlite.Driver{}, enginetest.CrashPlan{Cases: 12, Commits: 12}},
	}
	for _, e := range encodings {
		t.Run(e.name, func(t *testing.T) {
			plan, whole := e.short, os.Getenv("DROVER_TEST_LONG") != ""
			if whole {
				plan = enginetest.CrashPlan{Commits: 1, Effects: 1}
			}
			seen := &points{at: make(map[op.Point]int)}
			t.Run("crash", func(t *testing.T) {
				enginetest.Crash(t, func(t testing.TB) (store.Driver, string) {
					return &aging{Driver: e.driver, t: t, seen: seen}, t.TempDir()
				}, plan)
			})
			for _, p := range everyPoint {
				if whole && seen.at[p] == 0 {
					t.Errorf("no session stood at %s", p)
				}
			}
		})
	}
}

// everyPoint is where an operation of version 1 could stand.
var everyPoint = []op.Point{
	op.PointStarting, op.PointNeedAssistant, op.PointMayFinish, op.PointReady, op.PointEffectPending, op.PointRetryWait,
	op.PointTools, op.PointToolsPending, op.PointDeferredWaiting, op.PointDeferredPending, op.PointFailureDrain,
	"run.compaction.deciding", "run.compaction.ready", "run.compaction.effect_pending", "run.compaction.retry_wait",
	"compaction.deciding", "compaction.ready", "compaction.effect_pending", "compaction.retry_wait", op.PointNavigation,
	"navigation.summary.deciding", "navigation.summary.ready", "navigation.summary.effect_pending", "navigation.summary.retry_wait",
}

type points struct {
	mu sync.Mutex
	at map[op.Point]int
}

// aging is a driver whose sessions are of storage version 1 whenever they are
// opened, and migrated then.
type aging struct {
	store.Driver
	t    testing.TB
	seen *points
}

func (d *aging) Open(ctx context.Context, path string, o store.OpenOptions) (store.Backend, error) {
	old, err := d.age(ctx, path)
	if err != nil {
		return nil, err
	}
	d.view(ctx, path)
	b, err := d.Driver.Open(ctx, path, o)
	if err != nil {
		return nil, err
	}
	steps, err := migrate.Chain().After(path, b.Header().StorageVersion)
	if err != nil {
		return nil, err
	}
	if err := b.(store.Migrator).Migrate(ctx, steps); err != nil {
		d.t.Errorf("migrate: %v", err)
		return nil, err
	}
	snap, err := b.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	migrated, err := store.Collect(snap)
	if err == nil {
		d.judge(old, migrated)
	}
	return b, err
}

// age rewrites a session as version 1 would have left it.
func (d *aging) age(ctx context.Context, path string) ([]store.Record, error) {
	v, err := d.Driver.View(ctx, path)
	if err != nil {
		return nil, err
	}
	snap, err := v.Snapshot(ctx)
	if err != nil {
		return nil, firstOf(err, v.Close())
	}
	h := snap.Header
	h.StorageVersion, h.NextSeq = 1, snap.NextSeq
	records, err := store.Collect(snap)
	if err := firstOf(err, v.Close()); err != nil {
		return nil, err
	}
	for i := range records {
		if r := &records[i]; r.Kind == store.KindValue && r.Address.Namespace == "pi.op.state" {
			if r.Value, err = stateOf1(r.Value); err != nil {
				return nil, err
			}
		}
	}
	return records, d.Driver.Build(ctx, path, store.NewSnapshot(h, records), store.BuildOptions{Replace: true, NoSync: true})
}

// stateOf1 is an operation state without what version 2 brought.
func stateOf1(state json.RawMessage) (json.RawMessage, error) {
	settings, ok := rawjson.Get(state, "settings")
	if !ok {
		return state, nil
	}
	settings, err := rawjson.Delete(settings, "streamOptions")
	if err != nil {
		return nil, err
	}
	out, err := rawjson.Set(state, "settings", settings)
	return bytes.ReplaceAll(bytes.ReplaceAll(bytes.ReplaceAll(out,
		[]byte(`,"executions":1`), nil), []byte(`,"executions":2`), nil), []byte(`,"executions":3`), nil), err
}

// view reads the old session as a reader does: as if it were migrated.
func (d *aging) view(ctx context.Context, path string) {
	r, err := store.NewRepo(store.RepoOptions{Dir: filepath.Dir(path), Drivers: []store.Driver{d.Driver}, Migrations: migrate.Chain()})
	if err != nil {
		d.t.Fatal(err)
	}
	v, err := r.View(ctx, store.Ref{ID: "world", Path: path, Backend: d.Name()})
	if err != nil {
		d.t.Errorf("view: %v", err)
		return
	}
	for _, p := range enginetest.Problems(ctx, v) {
		d.t.Errorf("the view of an old session: %+v", p)
	}
	states, err := v.ScanValues(ctx, store.Address{Namespace: "pi.op.state"})
	if err := firstOf(err, v.Close()); err != nil {
		d.t.Error(err)
	}
	d.seen.mu.Lock()
	defer d.seen.mu.Unlock()
	for _, s := range states {
		state, err := op.DecodeState(s.Value)
		if err != nil {
			d.t.Errorf("the state in a view: %v", err)
			continue
		}
		d.seen.at[op.PointOf(state)]++
	}
}

// judge wants everything as it was, but for the states that had to change, and
// those not to change again.
func (d *aging) judge(old, migrated []store.Record) {
	if len(old) != len(migrated) {
		d.t.Errorf("%d records have become %d", len(old), len(migrated))
		return
	}
	chain := migrate.Chain()
	for i, was := range old {
		is := migrated[i]
		if was.Address.Namespace != "pi.op.state" {
			if a, b := fmt.Sprintf("%+v", deref(was)), fmt.Sprintf("%+v", deref(is)); a != b {
				d.t.Errorf("%s has become %s", a, b)
			}
			continue
		}
		again, err := chain[0].Apply(is.Address, is.Value)
		if err != nil || !slices.Equal(again, is.Value) || is.Seq != was.Seq {
			d.t.Errorf("migrated again, %s is %s (%v)", is.Value, again, err)
		}
	}
}

// deref is a record whose pointers are values, so that it prints whole.
func deref(r store.Record) []any {
	out := []any{r.Kind, r.Op, r.Seq, r.Address, string(r.Value)}
	if r.Entry != nil {
		out = append(out, r.Entry.Structure, string(r.Entry.Payload))
	}
	if r.Usage != nil {
		out = append(out, *r.Usage)
	}
	return out
}
