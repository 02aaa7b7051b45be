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
	records := make([]store.Record, n)
	for i := range records {
		e := &store.Entry{Structure: store.Structure{
			ID: benchID(i), Seq: int64(i + 1), Timestamp: 1_700_000_000_000 + int64(i), Type: store.TypeMessage,
		}, Payload: store.MessageEntry("", "", benchMessage(i)).Payload}
		if i > 0 {
			e.ParentID = benchID(i - 1)
		}
		records[i] = store.Record{Kind: store.KindEntry, Seq: e.Seq, Entry: e}
	}
	return store.NewSnapshot(store.Header{ID: "s", StorageVersion: store.StorageVersion, Generation: 1}, records)
}

func benchStore(b *testing.B, entries int) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "s.db")
	if err := (sqlite.Driver{}).Build(context.Background(), path, chain(entries), store.BuildOptions{NoSync: true}); err != nil {
		b.Fatal(err)
	}
	return path
}

// BenchmarkCommit is a settled answer: entry, two values, usage row, list
// deletion.
func BenchmarkCommit(b *testing.B) {
	s, err := sqlite.Driver{}.Open(context.Background(), benchStore(b, 1), store.OpenOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	opState := store.NewValue[json.RawMessage]("pi.op.state", "op_9")
	frames := store.NewList[json.RawMessage]("pi.pending.assistant_frame", "op_9:e_51")
	state := json.RawMessage(`{"phase":"checkpoint","pad":"` + strings.Repeat("x", 450) + `"}`)
	usage := message.Usage{Input: 1200, Output: 431, TotalTokens: 1631, Cost: message.Cost{Input: 0.0036, Output: 0.006465, Total: 0.010065}}
	b.ReportAllocs()
	var took []time.Duration
	for i := 1; b.Loop(); i++ {
		id := benchID(i)
		tx := store.Tx{
			store.InsertEntry(store.MessageEntry(id, benchID(i-1), benchMessage(i))),
			opState.Set(state),
			store.LaneLeaf("main").Set(store.LeafID(id)),
			store.InsertUsage(store.NewUsage{ID: "u" + id, EntryID: id, Usage: usage}),
			frames.Delete(),
		}
		t0 := time.Now()
		if _, err := s.Commit(context.Background(), tx); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(t0))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
}

// BenchmarkAppend is one frame appended to a list.
func BenchmarkAppend(b *testing.B) {
	s, err := sqlite.Driver{}.Open(context.Background(), benchStore(b, 1), store.OpenOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
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
