package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// stage is a world whose model talks, calls a tool, and talks again. moment runs
// on the way, between what the provider and the tool do.
type stage struct {
	*enginetest.World
	moment func(ctx context.Context, what string)
}

func newStage(t *testing.T) *stage {
	s := &stage{World: enginetest.InMemory(t), moment: func(context.Context, string) {}}
	*s.Pace = enginetest.Free
	s.Models.Add(talker{s})
	s.Options.Tools = tools{"work": worker{s}}
	s.Open()
	set := engine.Configure{ActiveToolNames: &[]string{"work"}}
	if err := s.Lane.Configure(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	return s
}

// run drives one run to its end.
func (s *stage) run(t *testing.T) {
	t.Helper()
	d, err := s.Lane.Prompt(t.Context(), engine.Request{Text: "go"})
	if err != nil || d.Kind != engine.Settled || d.Outcome.Kind != op.Completed {
		t.Errorf("the run ended with %+v, %v", d, err)
	}
}

type talker struct{ s *stage }

func (m talker) Info() effect.ModelInfo {
	return effect.ModelInfo{Ref: enginetest.Ref, API: "echo", ContextWindow: 100_000, MaxTokens: 8_000}
}

func (m talker) Stream(ctx context.Context, req effect.Request) effect.Events {
	a := message.Assistant{API: "echo", Provider: "acme", Model: "one", StopReason: message.StopPending, Timestamp: req.Now}
	var events []message.StreamEvent
	add := func(e message.StreamEvent) { events = append(events, e) }
	add(message.StreamEvent{Type: message.EventStart, Message: a.Message()})
	add(message.StreamEvent{Type: message.EventTextStart, Block: message.TextBlock("")})
	text := ""
	for i := range 20 {
		piece := fmt.Sprintf("%d ", i)
		text += piece
		add(message.StreamEvent{Type: message.EventTextDelta, Delta: piece})
	}
	add(message.StreamEvent{Type: message.EventTextEnd, Block: message.TextBlock(text)})
	a.Content, a.StopReason = []message.Block{message.TextBlock(text)}, message.StopStop
	if len(req.Messages) == 1 {
		call := message.Block{Type: message.BlockToolCall, ID: "c1", Name: "work", Arguments: json.RawMessage(`{"n":1}`)}
		add(message.StreamEvent{Type: message.EventToolCallStart, ContentIndex: 1, Block: call})
		add(message.StreamEvent{Type: message.EventToolCallEnd, ContentIndex: 1, Block: call})
		a.Content, a.StopReason = append(a.Content, call), message.StopToolUse
	}
	add(message.StreamEvent{Type: message.EventDone, Message: a.Message(), Reason: a.StopReason})
	return func(yield func(message.StreamEvent) bool) {
		for _, e := range events {
			m.s.moment(ctx, "before "+string(e.Type))
			if !yield(e) {
				return
			}
		}
	}
}

type tools map[string]effect.Tool

func (t tools) Lookup(name string) (effect.Tool, bool) { tool, ok := t[name]; return tool, ok }

type worker struct{ s *stage }

func (worker) Spec() message.ToolSpec                                { return message.ToolSpec{Name: "work"} }
func (worker) ReplaySafe() bool                                      { return false }
func (worker) Prepare(args json.RawMessage) (json.RawMessage, error) { return args, nil }
func (w worker) result(format string, args ...any) (r message.ToolResult) {
	r.Content = []message.Block{message.TextBlock(fmt.Sprintf(format, args...))}
	return r
}

func (w worker) Execute(ctx context.Context, call effect.Invocation) (message.ToolResult, error) {
	for i := range 5 {
		w.s.moment(ctx, "before an update")
		call.Update(w.result("step %d", i), i == 2)
	}
	w.s.moment(ctx, "before the result")
	return w.result("done"), nil
}

// screen is what a user interface makes of a snapshot and the events after it.
// It notices what it gets twice or not at all.
type screen struct {
	mu      sync.Mutex
	faults  []string
	text    string
	running map[string]string // call id: progress
	entries []string
}

func (s *screen) fault(format string, args ...any) {
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

func (s *screen) show(shot *engine.LaneSnapshot) {
	s.running = make(map[string]string)
	for _, r := range shot.Running {
		s.running[r.ToolCallID] = string(r.Partial)
	}
	for _, e := range shot.Transcript {
		s.entries = append(s.entries, e.ID)
	}
	s.text = shot.Streaming.Text()
}

func (s *screen) apply(e engine.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Type {
	case op.EventMessageStart:
		s.text = ""
	case op.EventMessageUpdate:
		if e.Stream.Type == message.EventTextDelta {
			s.text += e.Stream.Delta
		}
	case op.EventMessageEnd:
		if e.Message.Role() == message.RoleAssistant && s.text != e.Message.Text() {
			s.fault("%q grew into %q", s.text, e.Message.Text())
		}
	case op.EventEntryAdded:
		s.entries = append(s.entries, e.Entry.ID)
	case op.EventToolStart:
		if _, known := s.running[e.Tool.CallID]; known {
			s.fault("call %s started twice", e.Tool.CallID)
		}
		s.running[e.Tool.CallID] = ""
	case op.EventToolUpdate:
		if _, known := s.running[e.Tool.CallID]; !known || s.running[e.Tool.CallID] >= string(e.Tool.Result) {
			s.fault("call %s goes from %q to %q", e.Tool.CallID, s.running[e.Tool.CallID], e.Tool.Result)
		}
		s.running[e.Tool.CallID] = string(e.Tool.Result)
	case op.EventToolEnd:
		if _, known := s.running[e.Tool.CallID]; !known {
			s.fault("call %s ends unseen", e.Tool.CallID)
		}
		delete(s.running, e.Tool.CallID)
	}
}

// audience is a set of screens that began to look on at different moments.
type audience struct {
	t     *testing.T
	s     *stage
	mu    sync.Mutex
	began []string
	all   []*screen
	late  []func() // screens that listen only when all is over
}

// join looks on from now; every other screen lets its events pile up.
func (a *audience) join(when string) {
	w, err := a.s.Lane.Watch(context.Background())
	if err != nil {
		a.t.Errorf("watch %s: %v", when, err)
		return
	}
	view := &screen{}
	view.show(w.Snapshot.Snapshot)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.began, a.all = append(a.began, when), append(a.all, view)
	if len(a.all)%2 == 0 {
		a.late = append(a.late, func() { w.Start(view.apply) })
		return
	}
	w.Start(view.apply)
}

// check wants every screen to show what is stored, whenever it began.
func (a *audience) check() {
	a.t.Helper()
	for _, start := range a.late {
		start()
	}
	stored, err := a.s.Session.ScanEntries(a.t.Context(), store.EntryQuery{})
	if err != nil {
		a.t.Fatal(err)
	}
	var want []string
	for _, e := range stored {
		want = append(want, e.ID)
	}
	for i, view := range a.all {
		if len(view.faults) > 0 || len(view.running) > 0 {
			a.t.Errorf("looking on from %s: %v, still running: %v", a.began[i], view.faults, view.running)
		}
		if diff := cmp.Diff(want, view.entries); diff != "" {
			a.t.Errorf("looking on from %s: entries (-want +got):\n%s", a.began[i], diff)
		}
	}
}

// A watcher that begins at any moment of a run sees the rest of it, nothing
// twice (spec §5.4).
func TestWatchFromEveryMoment(t *testing.T) {
	s := newStage(t)
	a := &audience{t: t, s: s}
	s.moment = func(_ context.Context, what string) { a.join(what) }
	defer s.Harness.On(func(e engine.Event) { a.join("within " + string(e.Type)) })()
	a.join("before the run")
	s.run(t)
	if len(a.all) < 100 {
		t.Fatalf("looked on from %d moments only", len(a.all))
	}
	a.check()
}

// The same from moments that nobody chose.
func TestWatchFromAnywhere(t *testing.T) {
	s := newStage(t)
	a := &audience{t: t, s: s}
	over := make(chan struct{})
	var watchers sync.WaitGroup
	for range 4 {
		watchers.Go(func() {
			for range 50 {
				select {
				case <-over:
					return
				default:
					a.join("somewhere")
				}
			}
		})
	}
	s.run(t)
	close(over)
	watchers.Wait()
	a.check()
}

// What a watch holds back comes first and without a growing message; what comes
// while it is handed over keeps its place; nothing comes after Stop.
func TestWatchHandsOver(t *testing.T) {
	s := newStage(t)
	w, err := s.Lane.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.run(t)
	var labels []string
	first := true
	w.Start(func(e engine.Event) {
		if e.Partial != nil {
			t.Errorf("a held back %s has a growing message", e.Type)
		}
		if first {
			first = false
			if err := s.Harness.SetName(t.Context(), "during"); err != nil {
				t.Error(err)
			}
		}
		if e.Type == op.EventValueUpdate || e.Type == op.EventRunEnd {
			labels = append(labels, string(e.Type)+e.Text)
		}
	})
	if err := s.Harness.SetName(t.Context(), "live"); err != nil {
		t.Fatal(err)
	}
	w.Stop()
	if err := s.Harness.SetName(t.Context(), "after"); err != nil {
		t.Fatal(err)
	}
	want := []string{"run_end", "value_updateduring", "value_updatelive"}
	if diff := cmp.Diff(want, labels); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// Lanes that are created while sessions are watched are in the snapshot or come
// as an event.
func TestWatchSession(t *testing.T) {
	s := newStage(t)
	type seen struct {
		mu    sync.Mutex
		lanes map[string]int
	}
	var all []*seen
	var creating sync.WaitGroup
	for i := range 3 {
		creating.Go(func() {
			for j := range 40 {
				if _, err := s.Harness.CreateLane(t.Context(), fmt.Sprintf("lane-%d-%d", i, j), "", engine.Configure{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 200 {
		w, err := s.Harness.WatchSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		one := &seen{lanes: make(map[string]int)}
		for _, lane := range w.Snapshot.Lanes {
			one.lanes[lane.Lane]++
		}
		w.Start(func(e engine.Event) {
			one.mu.Lock()
			defer one.mu.Unlock()
			if e.Type == op.EventLaneCreated {
				one.lanes[e.Lane]++
			}
		})
		all = append(all, one)
	}
	creating.Wait()
	want := make(map[string]int)
	for _, lane := range s.Harness.Lanes() {
		want[lane.Name()] = 1
	}
	for i, one := range all {
		if diff := cmp.Diff(want, one.lanes); diff != "" {
			t.Fatalf("watch %d: lanes (-want +got):\n%s", i, diff)
		}
	}
}

func TestSessionSnapshotJSON(t *testing.T) {
	s := newStage(t)
	id := s.Accept("hi")
	w, err := s.Harness.WatchSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	got, err := w.Snapshot.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	leaf := string(w.Snapshot.Lanes[0].LeafID)
	want := `{"lanes":[{"name":"main","leafId":"` + leaf + `","operation":{"id":"` + id + `","kind":"run","status":"suspended"}}],"faulted":false}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}
}

// A report prefers what this process sees to what is stored, and shows what is
// stored once the process is another one (spec §5.4).
func TestReportOfLiveWork(t *testing.T) {
	s := newStage(t)
	type view struct {
		Status  engine.Status
		Text    string
		Running string
	}
	look := func() view {
		r, err := s.Lane.Report(context.Background(), true)
		if err != nil {
			t.Error(err)
			return view{}
		}
		v := view{Text: r.Snapshot.Streaming.Text()}
		if r.Current != nil {
			v.Status = r.Current.Status
		}
		for _, tool := range r.Snapshot.Running {
			v.Running += tool.ToolName + string(tool.Args) + string(tool.Partial)
		}
		return v
	}
	var got []view
	steps := 0
	s.moment = func(ctx context.Context, what string) {
		switch what {
		case "before text_end", "before done":
			got = append(got, look())
		case "before an update":
			switch steps++; steps {
			case 2:
				got = append(got, look())
			case 4:
				// The newest update has a checkpoint.
				go func() { _ = s.Harness.Close() }()
				<-ctx.Done()
			}
		}
	}
	text := ""
	for i := range 20 {
		text += fmt.Sprintf("%d ", i)
	}
	if d, err := s.Lane.Prompt(t.Context(), engine.Request{Text: "go"}); err == nil {
		t.Fatalf("the run went on to %+v", d)
	}
	s.Reopen()
	got = append(got, look())
	want := []view{
		{engine.StatusRunning, text, ""},
		{engine.StatusRunning, text, ""},
		{engine.StatusRunning, "", `work{"n":1}{"content":[{"type":"text","text":"step 0"}]}`},
		{engine.StatusSuspended, "", `work{"n":1}{"content":[{"type":"text","text":"step 2"}]}`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}

// Waiting for a drive ends at once when there is none, and with it otherwise.
func TestWaitForDrive(t *testing.T) {
	s := newStage(t)
	id := s.Accept("go")
	wait := func() (current string) {
		info, err := s.Lane.WaitForDrive(context.Background())
		if err != nil {
			t.Error(err)
		}
		if info.Current != nil {
			current = info.Current.ID
		}
		return current
	}
	if got := wait(); got != id {
		t.Errorf("the operation that nobody drives is %q, want %s", got, id)
	}
	ended := make(chan string, 1)
	var once sync.Once
	s.moment = func(_ context.Context, what string) {
		if what == "before start" {
			once.Do(func() { go func() { ended <- wait() }() })
		}
	}
	s.Drive(engine.DriveOptions{OperationID: id})
	if got := <-ended; got != "" {
		t.Errorf("the lane still has %s", got)
	}
}

func TestNamesAndLabelsAreTold(t *testing.T) {
	s := newStage(t)
	s.run(t)
	leaf, err := s.Session.View(store.MainLane).LeafID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	defer s.Harness.On(func(e engine.Event) {
		b, err := e.MarshalJSON()
		if err != nil {
			t.Error(err)
		}
		got = append(got, string(b))
	})()
	for _, err := range []error{
		s.Harness.SetName(t.Context(), "n"), s.Harness.SetName(t.Context(), ""),
		s.Harness.SetLabel(t.Context(), string(leaf), "l"), s.Harness.SetLabel(t.Context(), string(leaf), ""),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var unknown *store.UnknownTarget
	if err := s.Harness.SetLabel(t.Context(), "nowhere", "l"); !errors.As(err, &unknown) {
		t.Errorf("labelling nothing: %v", err)
	}
	id := `"targetId":"` + string(leaf) + `"`
	want := []string{
		`{"type":"value_update","value":"session_name","name":"n"}`, `{"type":"value_update","value":"session_name"}`,
		`{"type":"value_update","value":"entry_label",` + id + `,"label":"l"}`, `{"type":"value_update","value":"entry_label",` + id + `}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
