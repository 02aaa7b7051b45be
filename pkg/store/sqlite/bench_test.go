package sqlite_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/drover-run/drover/internal/bulk"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/sqlite"
	"github.com/drover-run/drover/pkg/store/storetest"
)

func benchStore(b *testing.B, entries int) string {
	b.Helper()
	path, err := bulk.Build(context.Background(), sqlite.Driver{}, b.TempDir(), bulk.Shape{ID: "s", Entries: entries, Plain: true})
	if err != nil {
		b.Fatal(err)
	}
	return path
}

func benchOpen(b *testing.B, entries int) store.Backend {
	b.Helper()
	s, err := sqlite.Driver{}.Open(context.Background(), benchStore(b, entries), store.OpenOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

func BenchmarkScale(b *testing.B) {
	storetest.Scale(b, func(t testing.TB) (store.Driver, string) { return sqlite.Driver{}, t.TempDir() })
}

// BenchmarkCommit is a settled answer. Its yardstick, C SQLite, is in the module
// bench.
func BenchmarkCommit(b *testing.B) {
	s := benchOpen(b, 1)
	b.ReportAllocs()
	var took []time.Duration
	for i := 1; b.Loop(); i++ {
		tx := storetest.Answer(i, bulk.EntryID(i-1))
		begun := time.Now()
		if _, err := s.Commit(context.Background(), tx); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begun))
	}
	b.ReportMetric(float64(storetest.Median(took).Nanoseconds()), "p50-ns")
}

// BenchmarkAppend is one frame appended to a list.
func BenchmarkAppend(b *testing.B) {
	s := benchOpen(b, 1)
	frames := store.NewList[json.RawMessage]("pi.pending.assistant_frame", "op_9:e_51")
	tx := store.Tx{frames.Append(json.RawMessage(`{"type":"text_delta","contentIndex":0,"delta":"a few words of it"}`))}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Commit(context.Background(), tx); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen takes ownership of a small session, reads its leaf and gives it
// up again.
func BenchmarkOpen(b *testing.B) {
	path := benchStore(b, 10)
	for b.Loop() {
		s, err := sqlite.Driver{}.Open(context.Background(), path, store.OpenOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := s.Value(context.Background(), store.LaneLeaf("main").Address()); err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkView opens a reader on a small session and reads its leaf.
func BenchmarkView(b *testing.B) {
	path := benchStore(b, 10)
	for b.Loop() {
		r, err := sqlite.Driver{}.View(context.Background(), path)
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := r.Value(context.Background(), store.LaneLeaf("main").Address()); err != nil {
			b.Fatal(err)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBranchScan reads a path of 10,000 entries with their payloads.
func BenchmarkBranchScan(b *testing.B) {
	const n = 10_000
	r, err := sqlite.Driver{}.View(context.Background(), benchStore(b, n))
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	b.ReportAllocs()
	for b.Loop() {
		es, err := r.ScanBranch(context.Background(), store.BranchQuery{Start: bulk.EntryID(n - 1)})
		if err != nil || len(es) != n {
			b.Fatalf("%d entries, %v", len(es), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
}

// BenchmarkBuild writes a session of 100,000 entries.
func BenchmarkBuild(b *testing.B) {
	shape := bulk.Shape{ID: "s", Entries: 100_000, Plain: true}
	dir := b.TempDir()
	for b.Loop() {
		path, err := bulk.Build(context.Background(), sqlite.Driver{}, dir, shape)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		info, err := os.Stat(path)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(info.Size())
		if err := os.Remove(path); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkBuildOfManyLeaves writes a branch of 10,000 entries of which every
// tenth has a second child: their paths are long, and the index grows with the
// entries only.
func BenchmarkBuildOfManyLeaves(b *testing.B) {
	const n = 11_000
	records := make([]store.Record, n)
	last := ""
	for i := range records {
		e := &store.Entry{Structure: store.Structure{ID: bulk.EntryID(i), ParentID: last, Seq: int64(i + 1), Type: store.TypeMessage}, Payload: []byte(`{}`)}
		if i%11 != 10 {
			last = e.ID
		}
		records[i] = store.Record{Kind: store.KindEntry, Seq: e.Seq, Entry: e}
	}
	snap := store.NewSnapshot(store.Header{ID: "s", StorageVersion: store.StorageVersion, Generation: 1}, records)
	path := filepath.Join(b.TempDir(), "s.db")
	for b.Loop() {
		if err := (sqlite.Driver{}).Build(context.Background(), path, snap, store.BuildOptions{NoSync: true}); err != nil {
			b.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/entry")
}

// BenchmarkCompact plans the compaction of a session of 20,000 entries of which
// nothing is dead: all of it is rewritten, as a trial.
func BenchmarkCompact(b *testing.B) {
	s, err := sqlite.Driver{}.View(context.Background(), benchStore(b, 20_000))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for b.Loop() {
		c, err := s.(store.CompactionPlanner).PlanCompaction(context.Background(), store.CompactOptions{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(c.BytesBefore)
	}
}

// BenchmarkRepairIndex indexes a session of 20,000 entries anew.
func BenchmarkRepairIndex(b *testing.B) {
	const n = 20_000
	s := benchOpen(b, n)
	for b.Loop() {
		if err := s.(store.IndexRepairer).RepairIndex(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/entry")
}
