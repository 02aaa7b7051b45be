package engine_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/storetest"
)

// runsPerSession is how many prompts a session of BenchmarkRun gets before a new
// one takes its place.
const runsPerSession = 16

// BenchmarkRun is a whole prompt without tools, its answer 16 frames long,
// through the public harness on JSONL. Its yardstick, in turns with it, is the
// same transactions committed straight into storage: "of-replay" is 1 when the
// engine costs nothing.
func BenchmarkRun(b *testing.B) {
	var ours, theirs time.Duration
	frames := 0
	b.ResetTimer()
	b.StopTimer()
	for done := 0; done < b.N; done += runsPerSession {
		w, recorded := recordedWorld(b)
		n := min(runsPerSession, b.N-done)
		b.StartTimer()
		begun := time.Now()
		for range n {
			if _, err := w.Lane.Prompt(b.Context(), engine.Request{Text: "hi"}); err != nil {
				b.Fatal(err)
			}
		}
		ours += time.Since(begun)
		b.StopTimer()
		if err := w.Harness.Close(); err != nil {
			b.Fatal(err)
		}
		txs := (*recorded).Committed()
		frames += framesOf(txs)
		theirs += replay(b, txs)
	}
	b.ReportMetric(float64(theirs)/float64(ours), "of-replay")
	b.ReportMetric(float64(theirs.Nanoseconds())/float64(b.N), "replay-ns/op")
	b.ReportMetric(float64(frames)/float64(b.N), "frames/op")
}

// recordedWorld is a world on JSONL with one answer of 16 frames, open.
func recordedWorld(b *testing.B) (*enginetest.World, **storetest.Recorder) {
	w := enginetest.NewWorld(b, &jsonl.Driver{}, b.TempDir())
	w.Quiet, *w.Pace = true, enginetest.Free
	chunk := strings.Repeat("word ", 12)
	w.Model.Reply = enginetest.Sequence(enginetest.Say(chunk, chunk, chunk, chunk, chunk, chunk, chunk, chunk, chunk, chunk, chunk, chunk, chunk))
	recorded := new(*storetest.Recorder)
	w.Decorate = func(s store.Backend) store.Backend {
		*recorded = storetest.NewRecorder(s)
		return *recorded
	}
	w.Open()
	return w, recorded
}

func framesOf(txs []storetest.Committed) int {
	n := 0
	for _, c := range txs {
		for _, write := range c.Tx {
			if write.Op == store.OpAppend {
				n++
			}
		}
	}
	return n
}

// replay commits the transactions to an empty session and says how long that took.
func replay(b *testing.B, txs []storetest.Committed) time.Duration {
	b.Helper()
	path := filepath.Join(b.TempDir(), "replay.jsonl")
	d := &jsonl.Driver{}
	snap := store.NewSnapshot(store.Header{ID: "replay", StorageVersion: store.StorageVersion, CreatedAt: enginetest.Start}, nil)
	if err := d.Build(b.Context(), path, snap, store.BuildOptions{}); err != nil {
		b.Fatal(err)
	}
	s, err := d.Open(b.Context(), path, store.OpenOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	begun := time.Now()
	for _, c := range txs {
		if _, err := s.Commit(b.Context(), c.Tx); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(begun)
}
