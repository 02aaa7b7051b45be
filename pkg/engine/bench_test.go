package engine_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
)

// maxAllocated is how many bytes a run may allocate for each byte of its answer,
// all garbage counted: frames, the draft, the settled entry (D41).
const maxAllocated = 24

// BenchmarkLongAnswer makes runs with ever longer answers and fails when what
// they allocate grows faster than the answers. In-process listeners are there, as
// the command line has one.
func BenchmarkLongAnswer(b *testing.B) {
	for _, mb := range []int{1, 5, 20} {
		b.Run(fmt.Sprintf("%dMB", mb), func(b *testing.B) {
			stream := longAnswer(mb<<20, 1<<10)
			b.SetBytes(int64(mb << 20))
			var allocated uint64
			for b.Loop() {
				w := enginetest.InMemory(b)
				w.Quiet, *w.Pace = true, enginetest.Free
				w.Model.Reply = enginetest.Sequence(enginetest.Reply{Events: stream})
				w.Open()
				w.Harness.On(func(op.Event) {})
				allocated += allocatedBy(func() {
					if _, err := w.Lane.Prompt(b.Context(), engine.Request{Text: "hi"}); err != nil {
						b.Fatal(err)
					}
				})
				_ = w.Harness.Close()
			}
			ratio := float64(allocated) / float64(b.N) / float64(mb<<20)
			b.ReportMetric(ratio, "alloc/byte")
			if ratio > maxAllocated {
				b.Errorf("%.1f bytes allocated for each byte of the answer, more than %d", ratio, maxAllocated)
			}
		})
	}
}

func allocatedBy(run func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// longAnswer is the stream of one text of size bytes in chunks, made once: what
// the provider itself needs is not the engine's.
func longAnswer(size, chunk int) []message.StreamEvent {
	text := strings.Repeat("lorem ip", size/8)
	block := message.TextBlock(text)
	a := message.Assistant{API: "echo", Provider: "acme", Model: "one", StopReason: message.StopPending, Timestamp: enginetest.Start}
	events := []message.StreamEvent{
		{Type: message.EventStart, Message: a.Message()},
		{Type: message.EventTextStart, Block: message.Block{Type: message.BlockText}},
	}
	for at := 0; at < size; at += chunk {
		events = append(events, message.StreamEvent{Type: message.EventTextDelta, Delta: text[at : at+chunk]})
	}
	a.Content, a.StopReason = []message.Block{block}, message.StopStop
	return append(events,
		message.StreamEvent{Type: message.EventTextEnd, Block: block},
		message.StreamEvent{Type: message.EventDone, Reason: message.StopStop, Message: a.Message()})
}
