package engine_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/storetest"
)

// runsPerSession is how many prompts a session of BenchmarkRun gets before a new
// one takes its place.
const runsPerSession = 4

// BenchmarkRun is a whole prompt without tools, its answer 16 frames long,
// through the public harness on JSONL. Its yardstick, in turns with it, is the
// same transactions committed straight into storage: "of-replay" is 1 when the
// engine costs nothing.
func BenchmarkRun(b *testing.B) {
	txs := recordedRuns(b)
	var ours, theirs time.Duration
	b.ResetTimer()
	b.StopTimer()
	for done := 0; done < b.N; done += runsPerSession {
		lane, end := benchLane(b, jsonl.Driver{})
		b.StartTimer()
		ours += prompts(b, lane)
		b.StopTimer()
		end()
		theirs += replay(b, txs)
	}
	b.ReportMetric(float64(theirs)/float64(ours), "of-replay")
	b.ReportMetric(float64(theirs.Nanoseconds())/float64(b.N), "replay-ns/op")
}

// recordedRuns are the transactions of one session.
func recordedRuns(b *testing.B) []storetest.Committed {
	b.Helper()
	var recorder *storetest.Recorder
	lane, end := benchLane(b, storetest.Wrap(jsonl.Driver{}, func(s store.Backend) store.Backend {
		recorder = storetest.NewRecorder(s)
		return recorder
	}))
	recorder.Reset() // what made the session
	prompts(b, lane)
	end()
	txs := recorder.Committed()
	frames := 0
	for _, c := range txs {
		for _, write := range c.Tx {
			if write.Op == store.OpAppend {
				frames++
			}
		}
	}
	if frames != 16*runsPerSession {
		b.Fatalf("%d frames in %d runs", frames, runsPerSession)
	}
	return txs
}

func prompts(b *testing.B, lane *engine.Lane) time.Duration {
	b.Helper()
	begun := time.Now()
	for range runsPerSession {
		d, err := lane.Prompt(b.Context(), engine.Request{Text: "hi"})
		if err != nil || d.Outcome.Kind != op.Completed {
			b.Fatal(d, err)
		}
	}
	return time.Since(begun)
}

// benchLane opens a new session with nothing around it that a program would not
// have.
func benchLane(b *testing.B, driver store.Driver) (*engine.Lane, func()) {
	b.Helper()
	repo, err := store.NewRepo(store.RepoOptions{Dir: b.TempDir(), Drivers: []store.Driver{driver}})
	if err != nil {
		b.Fatal(err)
	}
	s, _, err := repo.Create(b.Context(), store.CreateOptions{
		Config: &store.LaneConfiguration{Model: enginetest.Ref, ThinkingLevel: message.ThinkingOff, ActiveToolNames: []string{}},
	})
	if err != nil {
		b.Fatal(err)
	}
	h, err := engine.New(b.Context(), engine.Options{Session: s, Models: chatty{}, Now: func() int64 { return time.Now().UnixMilli() }})
	if err != nil {
		b.Fatal(err)
	}
	lane, err := h.Lane(store.MainLane)
	if err != nil {
		b.Fatal(err)
	}
	return lane, func() {
		if err := h.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// chatty is a registry with one model, whose answer of 16 frames costs nothing to
// make.
type chatty struct{}

func (chatty) Resolve(message.ModelRef) (effect.Model, error) { return chatty{}, nil }

func (chatty) Info() effect.ModelInfo {
	return effect.ModelInfo{Ref: enginetest.Ref, API: "echo", ContextWindow: 1_000_000, MaxTokens: 8_000}
}

func (chatty) Stream(context.Context, effect.Request) effect.Events {
	return func(yield func(message.StreamEvent) bool) {
		for _, e := range answerOf16 {
			if !yield(e) {
				return
			}
		}
	}
}

var answerOf16 = longAnswer(13*64, 64)

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
