package enginetest

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/memory"
	"github.com/drover-run/drover/pkg/store/storetest"
)

// TB is what a world needs of a test; testing.TB and rapid's T have it.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
	Context() context.Context
}

// World is one session, the harness that drives it, and everything around it
// that outlives a process: storage, clock, provider.
type World struct {
	TB      TB
	Clock   *Clock
	Models  *Models
	Model   *Model // the first of Models
	Trace   *Trace
	Options engine.Options // of every harness; Session, Models and Now are set
	Pace    *Pace
	// Decorate wraps the backend of the next open, around the tracing of commits
	// that reach the store.
	Decorate func(store.Backend) store.Backend
	// OnOpen runs after every open.
	OnOpen func()
	// Watch looks at the whole session after every commit.
	Watch bool
	// Quiet leaves the trace empty: it would keep every step of a long answer.
	Quiet bool

	Session *store.Session
	Harness *engine.Harness
	Lane    *engine.Lane

	repo   *store.Repo
	ref    store.Ref
	driver store.Driver
	pace   *pace
	life   *life

	Toolbox *Toolbox // nil without tools
	once    map[string]bool
	acted   map[string]bool // acts whose end a process has seen, by id
	ids     map[string]string
	mint    store.IDSource
	steps   int // of the latest process that was driven by hand
}

// Memory makes the driver of a world that does not care.
func Memory(testing.TB) (store.Driver, string) { return &memory.Driver{}, "/worlds" }

// InMemory is a world whose session lives in memory.
func InMemory(tb TB) *World {
	tb.Helper()
	return NewWorld(tb, &memory.Driver{}, "/worlds")
}

// NewWorld builds a world with one empty session in dir, nothing opened yet.
// Main has a configuration: model acme/one, no thinking, no tools. A request may
// be repeated twice, without waiting.
func NewWorld(tb TB, driver store.Driver, dir string) *World {
	tb.Helper()
	cfg := store.LaneConfiguration{Model: Ref, ThinkingLevel: message.ThinkingOff, ActiveToolNames: []string{}}
	return newWorld(tb, driver, dir, &cfg)
}

// Unconfigured is a world in memory whose main has no configuration yet.
func Unconfigured(tb TB) *World {
	tb.Helper()
	return newWorld(tb, &memory.Driver{}, "/worlds", nil)
}

func newWorld(tb TB, driver store.Driver, dir string, cfg *store.LaneConfiguration) *World {
	tb.Helper()
	w := &World{TB: tb, Clock: NewClock(), Models: &Models{complain: tb.Errorf}, Trace: &Trace{}, life: &life{}, acted: map[string]bool{}}
	w.pace = newPace(w)
	w.Pace = &w.pace.mode
	w.Model = &Model{
		Reply:     Sequence(Say("hello ", "you")),
		ModelInfo: effect.ModelInfo{Ref: Ref, API: "echo", ContextWindow: 100_000, MaxTokens: 8_000, Images: true},
		pace:      w.pace,
		hanging:   make(chan struct{}),
	}
	w.Models.Add(w.Model)
	w.Options = engine.Options{Retry: engine.RetryPolicy{MaxRetries: 2, MaxDelayMs: 3_600_000}}
	w.build(driver, dir, cfg)
	return w
}

// AddModel registers a further model, which answers as the first one does.
func (w *World) AddModel(info effect.ModelInfo) *Model {
	m := &Model{Reply: w.Model.Reply, ModelInfo: info, pace: w.pace, hanging: w.Model.hanging}
	w.Models.Add(m)
	return m
}

// build makes the session. Every open shares one id source, as if time alone had
// passed.
func (w *World) build(driver store.Driver, dir string, cfg *store.LaneConfiguration) {
	w.TB.Helper()
	ids := newIDs(w.Clock.Now)
	repo, err := store.NewRepo(store.RepoOptions{
		Dir: dir, Drivers: []store.Driver{storetest.Wrap(driver, w.decorate)},
		IDs: func() store.IDSource { return ids }, Now: w.Clock.Now,
	})
	w.fatal(err)
	s, ref, err := repo.Create(w.TB.Context(), store.CreateOptions{ID: "world", Config: cfg})
	w.fatal(err)
	w.fatal(s.Close())
	w.repo, w.ref, w.driver = repo, ref, driver
}

func (w *World) decorate(b store.Backend) store.Backend {
	if !w.Quiet {
		b = traced{b, w.Trace}
	}
	if w.Watch {
		b = watched{b, w.TB.Errorf}
	}
	if w.Decorate != nil {
		b = w.Decorate(b)
	}
	return paced{mortal{b, w.life}, w.pace}
}

// Open opens the session and restores a harness over it; nothing starts.
func (w *World) Open() {
	w.TB.Helper()
	var err error
	w.Session, err = w.repo.Open(w.TB.Context(), w.ref)
	w.fatal(err)
	o := w.Options
	o.Session, o.Models, o.Now = w.Session, w.Models, w.Clock.Now
	w.Harness, err = engine.New(w.TB.Context(), o)
	w.fatal(err)
	w.Lane, err = w.Harness.Lane(store.MainLane)
	w.fatal(err)
	w.TB.Cleanup(w.close)
	if w.OnOpen != nil {
		w.OnOpen()
	}
	if w.Quiet {
		return
	}
	w.Harness.On(func(e op.Event) {
		// When a fault is told depends on who is listening at that moment.
		if e.Type != op.EventFault {
			w.Trace.Add("%s", eventString(e))
		}
	})
}

// OpenUntil opens the session in a process that dies right after its n-th commit
// is durable: nothing that it does later has an effect.
func (w *World) OpenUntil(n int) {
	w.TB.Helper()
	w.open(storetest.Plan{Commit: n, After: true})
}

// OpenFaulty opens the session over a store whose n-th commit fails.
func (w *World) OpenFaulty(n int) {
	w.TB.Helper()
	w.open(storetest.Plan{Commit: n})
}

func (w *World) open(plan storetest.Plan) {
	w.TB.Helper()
	w.Decorate = func(b store.Backend) store.Backend { return storetest.NewFaulty(b, plan) }
	w.Open()
	w.Decorate = nil
}

// OpenMortal opens the session in a process that dies as planned.
func (w *World) OpenMortal(d Death) {
	w.TB.Helper()
	w.life = &life{death: d}
	w.Open()
}

// Die drives an operation in a process that dies on the way.
func (w *World) Die(operationID string) {
	w.TB.Helper()
	w.Trace.Add("> drive")
	_, err := w.Lane.Drive(w.TB.Context(), engine.DriveOptions{OperationID: operationID})
	var fault *store.Fault
	if !errors.As(err, &fault) {
		w.TB.Fatalf("the drive ended with %v", err)
	}
	w.Trace.Add("> the process dies")
}

// Close closes the harness: a controlled crash (spec §4.7).
func (w *World) Close() {
	w.TB.Helper()
	w.Trace.Add("> close")
	w.fatal(w.Harness.Close())
}

// close ends a harness that a test left open; a faulted one may say so.
func (w *World) close() { _ = w.Harness.Close() }

// Reopen closes what is open, faulted or not, and opens the session again.
func (w *World) Reopen() {
	w.TB.Helper()
	w.close()
	w.Trace.Add("> reopen")
	w.Open()
}

// View reads the session as another process would.
func (w *World) View() store.Reader {
	w.TB.Helper()
	r, err := w.repo.View(w.TB.Context(), w.ref)
	w.fatal(err)
	w.TB.Cleanup(func() { _ = r.Close() })
	return r
}

// Replace puts a copy of the session in its place while it is open, as somebody
// who knows nothing of its owner might.
func (w *World) Replace() {
	w.TB.Helper()
	snap, err := w.View().Snapshot(w.TB.Context())
	w.fatal(err)
	w.fatal(w.driver.Build(w.TB.Context(), w.ref.Path, snap, store.BuildOptions{Replace: true}))
}

// Accept accepts a prompt and returns its operation.
func (w *World) Accept(text string) string {
	w.TB.Helper()
	w.Trace.Add("> accept %q", text)
	a, err := w.Lane.Accept(w.TB.Context(), engine.Request{Text: text})
	w.fatal(err)
	return a.OperationID
}

// Drive drives one pass of an operation and wants it to end as want says.
func (w *World) Drive(o engine.DriveOptions) engine.DriveOutcome {
	w.TB.Helper()
	w.Trace.Add("> drive")
	d, err := w.Lane.Drive(w.TB.Context(), o)
	w.fatal(err)
	w.Trace.Add("%s", driveString(d))
	return d
}

// Prompt accepts a prompt and drives it to the end of one pass.
func (w *World) Prompt(text string) engine.DriveOutcome {
	w.TB.Helper()
	return w.Drive(engine.DriveOptions{OperationID: w.Accept(text)})
}

// Continue drives the open operation to the end of one pass.
func (w *World) Continue() engine.DriveOutcome {
	w.TB.Helper()
	info, err := w.Lane.InspectExecution(w.TB.Context())
	w.fatal(err)
	if info.Current == nil {
		w.TB.Fatal("no operation is open")
	}
	return w.Drive(engine.DriveOptions{OperationID: info.Current.ID})
}

// Verify wants the session clean.
func (w *World) Verify() {
	w.TB.Helper()
	if problems := Problems(w.TB.Context(), w.View()); len(problems) > 0 {
		w.TB.Fatalf("verify: %v", problems)
	}
}

// Problems is everything that is wrong with a session.
func Problems(ctx context.Context, r store.Reader) []store.Problem {
	var problems []store.Problem
	for p := range store.Verify(ctx, r, engine.Check) {
		problems = append(problems, p)
	}
	return problems
}

// Records is the durable state of the session, write by write.
func (w *World) Records() []store.Record {
	w.TB.Helper()
	snap, err := w.View().Snapshot(w.TB.Context())
	w.fatal(err)
	records, err := store.Collect(snap)
	w.fatal(err)
	return records
}

func (w *World) fatal(err error) {
	w.TB.Helper()
	if err != nil {
		w.TB.Fatal(err)
	}
}

// Equal compares whole values.
func Equal(tb TB, what string, got, want any) {
	tb.Helper()
	if diff := cmp.Diff(want, got, cmp.Transformer("text", func(b []byte) string { return string(b) })); diff != "" {
		tb.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func driveString(d engine.DriveOutcome) string {
	s := "= " + string(d.Kind)
	switch d.Kind {
	case engine.Settled:
		s += " " + string(d.Outcome.Kind) + " at " + entryName(string(d.Outcome.LeafID))
	case engine.Waiting:
		s += " for " + string(d.Reason)
		if d.NotBefore != nil {
			s += " not before " + offset(*d.NotBefore)
		}
		if d.Missing != nil {
			s += " " + d.Missing.Model
		}
	case engine.Yielded:
	}
	return s
}
