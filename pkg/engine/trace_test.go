package engine_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/message"
)

var update = flag.Bool("update", false, "rewrite the traces in testdata; read every changed line")

// wantTrace compares a trace with its golden file.
func wantTrace(t *testing.T, name string, w *enginetest.World) {
	t.Helper()
	path, got := filepath.Join("testdata", name+".txt"), w.Trace.String()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("trace (-want +got):\n%s", diff)
	}
}

// traces are whole histories beside Part 3: what was committed, in which order,
// between which events and provider calls (spec §9.3, tier B). The name of each
// is its file in testdata.
var traces = []struct {
	name string
	run  func(*enginetest.World)
}{
	{"run", func(w *enginetest.World) {
		w.Open()
		w.Prompt("hi")
		w.Prompt("again")
	}},
	{"frames_are_not_awaited", func(w *enginetest.World) {
		*w.Pace = enginetest.Late
		w.Model.Reply = enginetest.Sequence(enginetest.Reply{Thinking: "hm", Chunks: []string{"a", "b"}})
		w.Open()
		w.Prompt("hi")
	}},
	{"retry_then_success", func(w *enginetest.World) {
		w.Options.Retry.BaseDelayMs = 100
		w.Model.Reply = enginetest.Sequence(
			enginetest.Reply{Chunks: []string{"par"}, Error: "overloaded"}, enginetest.Refuse("slow down", 429, 5_000), enginetest.Say("ok"))
		w.Open()
		w.Prompt("hi")
		w.Continue() // too early: no request, no commit
		w.Clock.Advance(100)
		w.Continue()
		w.Clock.Advance(5_000)
		w.Continue()
	}},
	{"retries_exhausted", func(w *enginetest.World) {
		w.Model.Reply = enginetest.Sequence(enginetest.Fail("500 internal server error"))
		w.Open()
		w.Prompt("hi")
	}},
	{"permanent_error", func(w *enginetest.World) {
		w.Model.Reply = enginetest.Sequence(enginetest.Refuse("bad pairing", 400, 0))
		w.Open()
		w.Prompt("hi")
	}},
	{"retry_after_too_long", func(w *enginetest.World) {
		w.Model.Reply = enginetest.Sequence(enginetest.Refuse("slow down", 429, 16*24*3_600_000))
		w.Open()
		w.Prompt("hi")
	}},
	{"length", func(w *enginetest.World) {
		w.Model.Reply = enginetest.Sequence(enginetest.Reply{
			Chunks: []string{"cut"}, Stop: message.StopLength, Usage: &message.Usage{Input: 100, Output: 8_000, TotalTokens: 8_100},
		})
		w.Open()
		w.Prompt("hi")
	}},
	{"overflow", func(w *enginetest.World) {
		w.Model.Reply = enginetest.Sequence(enginetest.Fail("prompt is too long: 250000 tokens > 200000 maximum"))
		w.Open()
		w.Prompt("hi")
	}},
	{"overflow_by_length", func(w *enginetest.World) {
		w.Model.Reply = enginetest.Sequence(enginetest.Reply{Stop: message.StopLength, Usage: &message.Usage{Input: 99_900, TotalTokens: 99_900}})
		w.Open()
		w.Prompt("hi")
	}},
	{"orphan_without_frames", func(w *enginetest.World) { orphan(w, 4) }},
	{"orphan_with_partial_frames", func(w *enginetest.World) { orphan(w, 7) }},
	{"orphan_with_an_end_frame", func(w *enginetest.World) { orphan(w, 9) }},
	{"orphan_at_the_cap", func(w *enginetest.World) {
		w.Options.Retry.MaxRetries = 0
		orphan(w, 7)
	}},
	{"orphan_without_its_model", func(w *enginetest.World) {
		w.OpenUntil(7)
		w.Die(w.Accept("hi"))
		w.Models.Remove(enginetest.Ref)
		w.Reopen()
		w.Continue() // the synthetic settlement needs no model, the retry does
		w.Models.Add(w.Model)
		w.Continue()
	}},
	{"accepted_then_closed", func(w *enginetest.World) {
		w.Open()
		id := w.Accept("hi")
		w.Close()
		w.Reopen()
		w.Drive(engine.DriveOptions{OperationID: id})
	}},
	{"missing_identities", func(w *enginetest.World) {
		w.Open()
		id := w.Accept("hi")
		w.Models.Remove(enginetest.Ref)
		w.Drive(engine.DriveOptions{OperationID: id})
		w.Drive(engine.DriveOptions{OperationID: id})
		w.Models.Add(w.Model)
		w.Drive(engine.DriveOptions{OperationID: id})
	}},
	{"stream_vanishes", func(w *enginetest.World) {
		w.Model.Reply = enginetest.Sequence(enginetest.Reply{Chunks: []string{"par"}, Vanish: true}, enginetest.Say("ok"))
		w.Open()
		w.Prompt("hi")
	}},
	{"abort_nobody_asked_for", func(w *enginetest.World) {
		w.Model.Reply = enginetest.Sequence(enginetest.Reply{Chunks: []string{"par"}, Stop: message.StopAborted})
		w.Open()
		w.Prompt("hi")
	}},
	{"stream_contradicts_itself", func(w *enginetest.World) {
		w.Model.Reply = enginetest.Sequence(enginetest.Reply{Events: contradiction()}, enginetest.Say("ok"))
		w.Open()
		w.Prompt("hi")
	}},
	{"close_during_stream", closeDuringStream},
	{"fault_in_a_frame", func(w *enginetest.World) {
		w.OpenFaulty(7)
		w.Die(w.Accept("hi"))
		w.Reopen()
		w.Continue()
	}},
	{"fault_in_the_settlement", func(w *enginetest.World) {
		w.OpenFaulty(10)
		w.Die(w.Accept("hi"))
		w.Reopen()
		w.Continue()
	}},
	{"hooks", hooks},
	{"before_drive_fails", beforeDriveFails},
}

func TestTraces(t *testing.T) {
	for _, tt := range traces {
		t.Run(tt.name, func(t *testing.T) {
			w := enginetest.InMemory(t)
			tt.run(w)
			wantTrace(t, tt.name, w)
			w.Verify()
		})
	}
	// A golden without a trace would prove nothing.
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, os.DirEntry.IsDir)
	if len(files) != len(traces) {
		t.Errorf("%d goldens for %d traces", len(files), len(traces))
	}
}

// orphan lets a process die right after its n-th commit, then recovers.
func orphan(w *enginetest.World, n int) {
	w.OpenUntil(n)
	w.Die(w.Accept("hi"))
	w.Reopen()
	w.Continue()
}

// contradiction is a stream with a second block before the first.
func contradiction() []message.StreamEvent {
	start := message.Assistant{API: "echo", Provider: "acme", Model: "one", StopReason: message.StopPending, Timestamp: enginetest.Start}
	text := message.Block{Type: message.BlockText}
	return []message.StreamEvent{
		{Type: message.EventStart, Message: start.Message()},
		{Type: message.EventTextStart, ContentIndex: 0, Block: text},
		{Type: message.EventTextDelta, ContentIndex: 0, Delta: "good"},
		{Type: message.EventTextStart, ContentIndex: 5, Block: text},
		{Type: message.EventTextDelta, ContentIndex: 0, Delta: "never seen"},
	}
}
