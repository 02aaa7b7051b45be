package sqlite_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/sqlite"
)

var filler = strings.Repeat("The quick brown fox jumps over the lazy dog. ", 25)

func benchID(i int) string { return fmt.Sprintf("01900000-0000-7000-8000-%012x", i) }

func benchMessage(i int) message.Message {
	return message.Message(fmt.Sprintf(`{"role":"user","content":"%d %s","timestamp":1}`, i, filler))
}

// chain is a session of n message entries of about 1.2 KB in one branch.
func chain(n int) *store.Snapshot {
	return &store.Snapshot{
		Header:  store.Header{ID: "s", StorageVersion: store.StorageVersion, Generation: 1},
		NextSeq: int64(n + 1),
		Records: func(yield func(store.Record, error) bool) {
			for i := range n {
				e := &store.Entry{Structure: store.Structure{
					ID: benchID(i), Seq: int64(i + 1), Timestamp: 1_700_000_000_000 + int64(i), Type: store.TypeMessage,
				}, Payload: store.MessageEntry("", "", benchMessage(i)).Payload}
				if i > 0 {
					e.ParentID = benchID(i - 1)
				}
				if !yield(store.Record{Kind: store.KindEntry, Seq: e.Seq, Entry: e}, nil) {
					return
				}
			}
		},
		Close: func() error { return nil },
	}
}

func benchStore(b *testing.B, entries int) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "s.db")
	if err := (sqlite.Driver{}).Build(context.Background(), path, chain(entries), store.BuildOptions{NoSync: true}); err != nil {
		b.Fatal(err)
	}
	return path
}

var benchUsage = message.Usage{Input: 1200, Output: 431, TotalTokens: 1631, Cost: message.Cost{Input: 0.0036, Output: 0.006465, Total: 0.010065}}

// answer is the transaction of a settled answer: entry, two values, usage row,
// list deletion.
func answer(i int) store.Tx {
	opState := store.NewValue[json.RawMessage]("pi.op.state", "op_9")
	frames := store.NewList[json.RawMessage]("pi.pending.assistant_frame", "op_9:e_51")
	state := json.RawMessage(`{"phase":"checkpoint","pad":"` + strings.Repeat("x", 450) + `"}`)
	id := benchID(i)
	return store.Tx{
		store.InsertEntry(store.MessageEntry(id, benchID(i-1), benchMessage(i))),
		opState.Set(state),
		store.LaneLeaf("main").Set(store.LeafID(id)),
		store.InsertUsage(store.NewUsage{ID: "u" + id, EntryID: id, Usage: benchUsage}),
		frames.Delete(),
	}
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

// timed measures one call.
func timed(b *testing.B, f func() error) time.Duration {
	t0 := time.Now()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	return time.Since(t0)
}

// times collects the durations of one kind of call.
type times []time.Duration

func (t times) median() float64 {
	slices.Sort(t)
	return float64(t[len(t)/2].Nanoseconds())
}

// report gives two medians and what the first is of the second.
func report(b *testing.B, big, small times) {
	b.ReportMetric(big.median(), "big-p50-ns")
	b.ReportMetric(small.median(), "small-p50-ns")
	b.ReportMetric(big.median()/small.median(), "big/small")
}

func BenchmarkCommit(b *testing.B) {
	s := benchOpen(b, 1)
	b.ReportAllocs()
	var took times
	for i := 1; b.Loop(); i++ {
		tx := answer(i)
		took = append(took, timed(b, func() error { _, err := s.Commit(context.Background(), tx); return err }))
	}
	b.ReportMetric(took.median(), "p50-ns")
}

// BenchmarkCommitAtAMillion alternates commits to a session of a million entries
// with commits to one of a thousand. Use -benchtime 10000x.
func BenchmarkCommitAtAMillion(b *testing.B) {
	const many, few = 1_000_000, 1_000
	big, small := benchOpen(b, many), benchOpen(b, few)
	var bigTook, smallTook times
	for i := 0; b.Loop(); i++ {
		bigTx, smallTx := answer(many+i), answer(few+i)
		bigTook = append(bigTook, timed(b, func() error { _, err := big.Commit(context.Background(), bigTx); return err }))
		smallTook = append(smallTook, timed(b, func() error { _, err := small.Commit(context.Background(), smallTx); return err }))
	}
	report(b, bigTook, smallTook)
}

// BenchmarkNewest100 alternates reads of the newest 100 entries of a branch of
// 100,000 with those of a branch of 1,000.
func BenchmarkNewest100(b *testing.B) {
	const many, few = 100_000, 1_000
	big, small := benchOpen(b, many), benchOpen(b, few)
	newest := func(s store.Backend, leaf int) func() error {
		q := store.BranchQuery{Start: benchID(leaf), Limit: 100}
		return func() error {
			es, err := s.ScanBranch(context.Background(), q)
			if err == nil && len(es) != 100 {
				b.Fatalf("%d entries", len(es))
			}
			return err
		}
	}
	var bigTook, smallTook times
	for b.Loop() {
		bigTook = append(bigTook, timed(b, newest(big, many-1)))
		smallTook = append(smallTook, timed(b, newest(small, few-1)))
	}
	report(b, bigTook, smallTook)
}

// BenchmarkDiverge is one entry below another than the newest, in a branch of
// 100,000 entries without a compaction, alternated with a branch of 1,000.
func BenchmarkDiverge(b *testing.B) {
	const many, few = 100_000, 1_000
	big, small := benchOpen(b, many), benchOpen(b, few)
	fork := func(s store.Backend, leaf, i int) func() error {
		id := fmt.Sprintf("fork-%09d", i)
		return func() error {
			_, err := s.Commit(context.Background(), store.Tx{store.InsertEntry(store.MessageEntry(id, benchID(leaf-1), benchMessage(i)))})
			return err
		}
	}
	var bigTook, smallTook times
	for i := 0; b.Loop(); i++ {
		bigTook = append(bigTook, timed(b, fork(big, many-1, i)))
		smallTook = append(smallTook, timed(b, fork(small, few-1, i)))
	}
	report(b, bigTook, smallTook)
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
		es, err := r.ScanBranch(context.Background(), store.BranchQuery{Start: benchID(n - 1)})
		if err != nil || len(es) != n {
			b.Fatalf("%d entries, %v", len(es), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
}

// BenchmarkBuild writes a session of 100,000 entries.
func BenchmarkBuild(b *testing.B) {
	const n = 100_000
	snap := chain(n)
	path := filepath.Join(b.TempDir(), "s.db")
	b.SetBytes(int64(n * len(filler)))
	for b.Loop() {
		if err := (sqlite.Driver{}).Build(context.Background(), path, snap, store.BuildOptions{NoSync: true}); err != nil {
			b.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			b.Fatal(err)
		}
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
		e := &store.Entry{Structure: store.Structure{ID: benchID(i), ParentID: last, Seq: int64(i + 1), Type: store.TypeMessage}, Payload: []byte(`{}`)}
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

// BenchmarkCompact rewrites a session of 20,000 entries of which nothing is
// dead, as a trial.
func BenchmarkCompact(b *testing.B) {
	s := benchOpen(b, 20_000)
	for b.Loop() {
		c, err := s.(store.Compacter).Compact(context.Background(), store.CompactOptions{DryRun: true})
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
