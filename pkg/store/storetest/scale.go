package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-run/drover/internal/bulk"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Scale compares what a driver's calls cost in a large session with what they
// cost in a small one, in turns, and reports the relation of their medians as
// "big/small".
func Scale(b *testing.B, newDriver NewDriver) {
	b.Run("commit at a million", func(b *testing.B) {
		against(b, newDriver, sizes{1_000_000, 1_000, 10_000}, func(s store.Backend, entries int) func(i int) error {
			return func(i int) error {
				_, err := s.Commit(context.Background(), Answer(entries+i, bulk.EntryID(entries+i-1)))
				return err
			}
		})
	})
	b.Run("newest 100", func(b *testing.B) {
		against(b, newDriver, sizes{100_000, 1_000, 500}, func(s store.Backend, entries int) func(int) error {
			q := store.BranchQuery{Start: bulk.EntryID(entries - 1), Limit: 100}
			return func(int) error {
				es, err := s.ScanBranch(context.Background(), q)
				if err == nil && len(es) != q.Limit {
					err = fmt.Errorf("%d entries", len(es))
				}
				return err
			}
		})
	})
	b.Run("diverge", func(b *testing.B) {
		against(b, newDriver, sizes{100_000, 1_000, 1_000}, func(s store.Backend, entries int) func(i int) error {
			return func(i int) error {
				_, err := s.Commit(context.Background(), store.Tx{store.InsertEntry(
					store.MessageEntry(fmt.Sprintf("side-%09d", i), bulk.EntryID(entries-2), benchMessage))})
				return err
			}
		})
	})
}

// sizes are the numbers of entries that are compared, and how many calls of each
// are one operation of the benchmark.
type sizes struct{ large, small, calls int }

// against times what prepare returns for a large and for a small session. Which
// of the two comes first changes from turn to turn.
func against(b *testing.B, newDriver NewDriver, n sizes, prepare func(s store.Backend, entries int) func(i int) error) {
	b.Helper()
	do := [2]func(int) error{}
	for i, entries := range []int{n.large, n.small} {
		do[i] = prepare(openPlain(b, newDriver, entries), entries)
	}
	var took [2][]time.Duration
	i := 0
	for b.Loop() {
		for last := i + n.calls; i < last; i++ {
			for turn := range 2 {
				which := (i + turn) % 2
				begun := time.Now()
				if err := do[which](i); err != nil {
					b.Fatal(err)
				}
				took[which] = append(took[which], time.Since(begun))
			}
		}
	}
	big, little := Median(took[0]), Median(took[1])
	b.ReportMetric(float64(big.Nanoseconds()), "big-p50-ns")
	b.ReportMetric(float64(little.Nanoseconds()), "small-p50-ns")
	b.ReportMetric(float64(big)/float64(little), "big/small")
}

// openPlain is a session of one branch of so many messages of about 1 KB.
func openPlain(b *testing.B, newDriver NewDriver, entries int) store.Backend {
	b.Helper()
	d, dir := newDriver(b)
	path, err := bulk.Build(context.Background(), d, dir, bulk.Shape{ID: "plain", Entries: entries, Plain: true})
	if err != nil {
		b.Fatal(err)
	}
	s, err := d.Open(context.Background(), path, store.OpenOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

// Median is the middle of some durations.
func Median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

var (
	benchMessage = message.Message(`{"role":"user","content":"` + strings.Repeat("The quick brown fox jumps over the lazy dog. ", 25) + `","timestamp":1}`)
	benchState   = json.RawMessage(`{"phase":"checkpoint","pad":"` + strings.Repeat("x", 450) + `"}`)
	benchUsage   = message.Usage{Input: 1200, Output: 431, TotalTokens: 1631, Cost: message.Cost{Input: 0.0036, Output: 0.006465, Total: 0.010065}}
	benchOpState = store.NewValue[json.RawMessage]("pi.op.state", "op_9")
	benchFrames  = store.NewList[json.RawMessage]("pi.pending.assistant_frame", "op_9:e_51")
)

// Answer is the transaction of a settled answer, as entry number i below parent:
// entry, two values, usage row, list deletion.
func Answer(i int, parent string) store.Tx {
	id := bulk.EntryID(i)
	return store.Tx{
		store.InsertEntry(store.MessageEntry(id, parent, benchMessage)),
		benchOpState.Set(benchState),
		store.LaneLeaf(store.MainLane).Set(store.LeafID(id)),
		store.InsertUsage(store.NewUsage{ID: "u" + id, EntryID: id, Usage: benchUsage}),
		benchFrames.Delete(),
	}
}
