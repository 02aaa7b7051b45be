package engine_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/telemetry"
)

// recorded is a span that remembers what was told of it.
type recorded struct {
	all    *recorder
	name   string
	attrs  []telemetry.Attr
	below  []*recorded
	ended  int
	failed bool
}

type recorder struct {
	mu   sync.Mutex
	root recorded
}

func newRecorder() *recorder {
	r := &recorder{}
	r.root.all = r
	return r
}

func (s *recorded) Start(name string, attrs ...telemetry.Attr) telemetry.Span {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	child := &recorded{all: s.all, name: name, attrs: attrs}
	s.below = append(s.below, child)
	return child
}

func (s *recorded) Set(attrs ...telemetry.Attr) {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	s.attrs = append(s.attrs, attrs...)
}

func (s *recorded) End(err error) {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	s.ended++
	s.failed = err != nil
}

// outline draws the spans as a tree, commits and events left out.
func (s *recorded) outline(depth int) string {
	var b strings.Builder
	for _, c := range s.below {
		if c.name == telemetry.SpanWrite || c.name == telemetry.SpanEvent {
			continue
		}
		fmt.Fprintf(&b, "%s%s\n%s", strings.Repeat("  ", depth), strings.TrimPrefix(c.name, "pi."), c.outline(depth+1))
	}
	return b.String()
}

func (s *recorded) walk(use func(parent, s *recorded)) {
	for _, c := range s.below {
		use(s, c)
		c.walk(use)
	}
}

func (s *recorded) attr(key string) any {
	i := slices.IndexFunc(s.attrs, func(a telemetry.Attr) bool { return a.Key == key })
	if i < 0 {
		return nil
	}
	return s.attrs[i].Value
}

// A run with a failed attempt and a tool call nests as its procedures do (§5.8);
// every span ends once, and every commit of the pass is told below one of them.
func TestSpans(t *testing.T) {
	w := enginetest.InMemory(t)
	told := newRecorder()
	w.Options.Telemetry = &told.root
	w.Options.Retry = engine.RetryPolicy{MaxRetries: 2, BaseDelayMs: 1}
	w.Model.Reply = enginetest.Sequence(
		enginetest.Fail("500 internal server error"), enginetest.Ask(enginetest.Call("c1", "look", `{"secret":"MARKER"}`)), enginetest.Say("MARKER"),
	)
	w.Tools(filepath.Join(t.TempDir(), "ran"), &enginetest.Tool{Name: "look"})
	w.Open()
	activateTool(t, w, "look")
	if d := w.Drive(engine.DriveOptions{OperationID: w.Accept("MARKER"), WaitForRetry: true}); d.Kind != engine.Settled || d.Outcome.Kind != op.Completed {
		t.Fatalf("%+v", d)
	}
	want := `harness.run
  harness.checkpoint
  harness.turn
    harness.step
      ai.request
    harness.sleep
    harness.step
      ai.request
    harness.tool
  harness.checkpoint
  harness.turn
    harness.step
      ai.request
  harness.checkpoint
`
	if diff := cmp.Diff(want, told.root.outline(0)); diff != "" {
		t.Error(diff)
	}
	writes := 0
	told.root.walk(func(parent, s *recorded) {
		if s.ended != 1 {
			t.Errorf("%s ended %d times", s.name, s.ended)
		}
		if text := fmt.Sprint(s.attrs); strings.Contains(text, "MARKER") {
			t.Errorf("%s tells content: %s", s.name, text)
		}
		if s.name == telemetry.SpanWrite {
			writes++
			if s.attr("pi.session.last_seq") == nil || s.attr("pi.session.item_kinds") == "" {
				t.Errorf("a commit is told with %v", s.attrs)
			}
		}
	})
	if got := int(w.Records()[len(w.Records())-1].Seq); writes == 0 || writes > got {
		t.Errorf("%d commits told, %d records", writes, got)
	}
}

// Each listener's handling of an event is told below what it is an event of, but for
// updates; one that panics has failed.
func TestSpansOfEvents(t *testing.T) {
	w := enginetest.InMemory(t)
	told := newRecorder()
	w.Options.Telemetry = &told.root
	w.Model.Reply = enginetest.Sequence(enginetest.Say("said"), enginetest.Say("said"))
	w.Open() // with a listener of the world's
	var heard []string
	w.Harness.On(func(e op.Event) { heard = append(heard, string(e.Type)) })
	panics := op.EventType("")
	w.Harness.On(func(e op.Event) {
		if e.Type == panics {
			panic("MARKER")
		}
	})
	id := w.Accept("hi")
	accepted := len(heard)
	w.Drive(engine.DriveOptions{OperationID: id})
	events, above := map[string]int{}, 0
	told.root.walk(func(parent, s *recorded) {
		if s.name != telemetry.SpanEvent {
			return
		}
		events[s.attr("pi.event").(string)]++
		if parent == &told.root {
			above++ // those of the acceptance, which no pass is a part of
		}
		if s.ended != 1 || s.failed {
			t.Errorf("%+v below %s", s, parent.name)
		}
	})
	if above != 3*accepted {
		t.Errorf("%d spans are below no operation, want %d", above, 3*accepted)
	}
	want := map[string]int{}
	for _, e := range heard {
		if e != string(op.EventMessageUpdate) {
			want[e] += 3
		}
	}
	if diff := cmp.Diff(want, events); diff != "" || events[string(op.EventMessageEnd)] == 0 || !slices.Contains(heard, string(op.EventMessageUpdate)) {
		t.Errorf("%s\nheard %q", diff, heard)
	}

	panics = op.EventTurnEnd
	if _, err := w.Lane.Drive(t.Context(), engine.DriveOptions{OperationID: w.Accept("again")}); err == nil {
		t.Error("a listener that panics is no fault")
	}
	failed := 0
	told.root.walk(func(_, s *recorded) {
		if s.name == telemetry.SpanEvent && s.failed {
			failed++
		}
	})
	if failed != 1 {
		t.Errorf("%d listeners failed", failed)
	}
}

// The other two kinds of operation have spans of their own.
func TestSpanNames(t *testing.T) {
	for kind, want := range map[op.Kind]string{
		op.KindRun: telemetry.SpanRun, op.KindCompaction: telemetry.SpanCompaction, op.KindNavigation: telemetry.SpanNavigation,
	} {
		if got := engine.OperationSpan(kind); got != want {
			t.Errorf("%s is told as %s", kind, got)
		}
	}
}

// A run with every effect tells names, ids, counts and nothing else: no attribute
// has room for a word of the conversation.
func TestSpansOfEverything(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		*w.Pace = enginetest.Free
		told := newRecorder()
		w.Options.Telemetry = &told.root
		everything(w, (&begun{}).tell)
		id := startEverything(t, w)
		if end := <-driveEverything(w, id); end.err != nil {
			t.Fatal(end.err)
		}
		word := regexp.MustCompile(`^[A-Za-z0-9_.:,/-]{0,80}$`)
		names := map[string]int{}
		told.root.walk(func(_, s *recorded) {
			names[s.name]++
			if s.ended != 1 {
				t.Errorf("%s ended %d times", s.name, s.ended)
			}
			for _, a := range s.attrs {
				if text, ok := a.Value.(string); ok && !word.MatchString(text) {
					t.Errorf("%s tells %s %q", s.name, a.Key, text)
				}
			}
		})
		for _, name := range []string{
			telemetry.SpanRun, telemetry.SpanCheckpoint, telemetry.SpanTurn, telemetry.SpanStep,
			telemetry.SpanTool, telemetry.SpanHook, telemetry.SpanSleep, telemetry.SpanWrite, telemetry.SpanRequest, telemetry.SpanEvent,
		} {
			if names[name] == 0 {
				t.Errorf("%s is never told", name)
			}
		}
	})
}
