package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// A random script of whole operations, writes and settings comes to the same end
// wherever its processes die: crashes cost attempts and nothing else. Its provider
// answers by what it is asked, its tools may run again.
func TestRandomScriptsSurviveCrashes(t *testing.T) {
	enginetest.Fewer(t, "20")
	rapid.Check(t, randomScript)
}

func FuzzRandomScripts(f *testing.F) { f.Fuzz(rapid.MakeFuzz(randomScript)) }

func randomScript(t *rapid.T) {
	steps := rapid.SliceOfN(rapid.SampledFrom(scriptSteps), 1, 8).Draw(t, "steps")
	deaths := rapid.SliceOfN(rapid.IntRange(1, 20), 1, 4).Draw(t, "deaths")
	want := playScript(t, steps, nil)
	got := playScript(t, steps, deaths)
	enginetest.Equal(t, "the end", got, want)
}

// scriptSteps are what a script is made of: what is asked for, and its text.
var scriptSteps = []string{
	"say a", "say b", "use safe", "use safe safe", "use nope", "wait", "refuse",
	"compact", "navigate", "navigate with a summary", "root", "next", "append", "note", "name", "label", "lane", "level", "aborted",
}

// scriptEnd is what a script leaves, apart from ids, times and attempts.
type scriptEnd struct {
	Lanes  map[string][]string
	Last   map[string]enginetest.End
	Name   string
	Labels int
	Queued map[string]int
}

// playScript plays a script in processes of which each dies after so many commits,
// then in one that lives.
func playScript(t *rapid.T, steps []string, deaths []int) scriptEnd {
	s := newScript(t, deaths != nil)
	at := 0
	for _, n := range deaths {
		s.w.OpenUntil(n)
		at = s.play(steps, at)
		_ = s.w.Harness.Close()
	}
	s.w.Open()
	if at = s.play(steps, at); at < len(steps) {
		t.Fatalf("step %d of %v: %v", at, steps, s.err)
	}
	return s.end()
}

// script is who plays one: it knows what it has asked for, and nothing of how far
// that came in a process that died.
type script struct {
	w   *enginetest.World
	err error
}

func newScript(t *rapid.T, watch bool) *script {
	s := &script{w: enginetest.InMemory(t)}
	w := s.w
	w.Quiet, w.Watch, *w.Pace = true, watch, enginetest.Free
	w.Options.Retry.MaxRetries = 20
	w.Options.Compaction = op.CompactionSettings{ReserveTokens: 1_000, KeepRecentTokens: 4}
	arm(w, puppet{name: "safe", safe: true})
	w.Model.Reply = func(_ int, req effect.Request) enginetest.Reply { return scriptReply(req) }
	deferrable(w)
	return s
}

// scriptReply answers by the request alone.
func scriptReply(req effect.Request) enginetest.Reply {
	last := req.Messages[len(req.Messages)-1]
	asked := last.Text()
	kind, rest, _ := strings.Cut(asked, " ")
	switch {
	case last.Role() == message.RoleToolResult:
		return enginetest.Say("used ", asked)
	case strings.Contains(asked, "<conversation>"):
		return whole("sum")
	case kind == "use":
		return calls(strings.Fields(rest)...)
	case kind == "wait" && string(req.Options.Deferred) != "false":
		return later("job")
	case kind == "refuse":
		return enginetest.Refuse("no", 400, 0)
	}
	return enginetest.Say("you said ", asked)
}

// play goes on with a script until it ends or its process dies.
func (s *script) play(steps []string, at int) int {
	names := []string{"safe"}
	if s.err = s.w.Lane.Configure(context.Background(), engine.Configure{ActiveToolNames: &names}); s.err != nil {
		return at
	}
	for ; at < len(steps); at++ {
		if s.err = s.step(at, steps[at]); s.err != nil {
			return at
		}
	}
	return at
}

// id is a step's own id, for whatever it asks for: the same however often it asks.
func (s *script) id(at int) string { return fmt.Sprintf("018bcfe5-6800-7000-8000-%012x", at+1) }

func (s *script) step(at int, what string) error {
	ctx, l, id := context.Background(), s.w.Lane, s.id(at)
	switch what {
	case "compact":
		return s.operation(id, func() (engine.Admission, error) {
			return l.AcceptCompaction(ctx, engine.CompactRequest{OperationID: id})
		})
	case "navigate", "navigate with a summary", "root":
		return s.navigate(id, what)
	case "next":
		_, err := l.NextRun(ctx, engine.Queued{EntryID: id, Text: "say queued"})
		return err
	case "append", "note":
		content := store.PendingEntry{Type: store.TypeCustom, CustomType: "note"}
		if what == "append" {
			content = store.PendingEntry{Type: store.TypeMessage, Payload: []byte(message.NewUser("say appended", nil, enginetest.Start))}
		}
		_, _, err := l.Append(ctx, id, content)
		return err
	case "name":
		return s.w.Harness.SetName(ctx, "named")
	case "label":
		leaf, err := s.w.Session.View("main").LeafID(ctx)
		if err != nil || leaf == "" {
			return err
		}
		return s.w.Harness.SetLabel(ctx, string(leaf), "here")
	case "lane":
		_, err := s.w.Harness.CreateLane(ctx, "side", "", engine.Configure{Model: &enginetest.Ref})
		var exists *store.LaneExists
		if errors.As(err, &exists) {
			return nil
		}
		return err
	case "level":
		high := message.ThinkingHigh
		return l.Configure(ctx, engine.Configure{ThinkingLevel: &high})
	case "aborted":
		return s.aborted(id)
	}
	return s.operation(id, func() (engine.Admission, error) {
		return l.Accept(ctx, engine.Request{OperationID: id, Text: what})
	})
}

// operation asks for an operation unless it was accepted already, and drives it to
// its end. A refusal is an end, too.
func (s *script) operation(id string, accept func() (engine.Admission, error)) error {
	info, err := s.w.Lane.InspectExecution(context.Background())
	if err != nil || info.LastResult != nil && info.LastResult.OperationID == id {
		return err
	}
	if info.Current == nil {
		var tagged interface{ Tag() string }
		if _, err := accept(); errors.As(err, &tagged) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return s.drive(id)
}

func (s *script) drive(id string) error {
	for {
		d, err := s.w.Lane.Drive(context.Background(), engine.DriveOptions{OperationID: id, WaitForRetry: true, PollDeferred: true})
		if err != nil || d.Kind == engine.Settled {
			return err
		}
	}
}

// aborted is a run that is cancelled before anybody drives it.
func (s *script) aborted(id string) error {
	ctx := context.Background()
	info, err := s.w.Lane.InspectExecution(ctx)
	if err != nil || info.LastResult != nil && info.LastResult.OperationID == id {
		return err
	}
	if info.Current == nil {
		if _, err := s.w.Lane.Accept(ctx, engine.Request{OperationID: id, Text: "say nothing"}); err != nil {
			return err
		}
	}
	if _, err := s.w.Lane.RequestAbort(ctx, id); err != nil {
		return err
	}
	return s.drive(id)
}

func (s *script) navigate(id, what string) error {
	ctx := context.Background()
	r := engine.NavigateRequest{OperationID: id}
	if what != "root" {
		first, err := s.w.Session.ScanEntries(ctx, store.EntryQuery{Type: store.TypeMessage, Limit: 1})
		if err != nil || len(first) == 0 {
			return err
		}
		r.Target, r.Summarize = store.LeafID(first[0].ID), what != "navigate"
	}
	return s.operation(id, func() (engine.Admission, error) { return s.w.Lane.AcceptNavigation(ctx, r) })
}

// end reads what a script left.
func (s *script) end() scriptEnd {
	s.w.Verify()
	ctx, r := context.Background(), s.w.Session
	e := scriptEnd{Lanes: map[string][]string{}, Last: map[string]enginetest.End{}, Queued: map[string]int{}}
	for _, l := range s.w.Harness.Lanes() {
		leaf, err := r.View(l.Name()).LeafID(ctx)
		s.check(err)
		var branch []store.Entry
		if leaf != "" {
			branch, err = r.ScanBranch(ctx, store.BranchQuery{Start: string(leaf), OldestFirst: true})
			s.check(err)
		}
		e.Lanes[l.Name()] = essence(branch)
		last, _, err := store.Get(ctx, r, op.LastResult(l.Name()))
		s.check(err)
		e.Last[l.Name()] = enginetest.End{Outcome: last.Value.Outcome, Completion: last.Value.RunCompletion}
		lane, _, err := store.Get(ctx, r, store.LaneStateOf(l.Name()))
		s.check(err)
		e.Queued[l.Name()] = len(lane.Value.PendingNextRun)
	}
	var err error
	e.Name, _, err = r.View("main").Name(ctx)
	s.check(err)
	for _, rec := range s.w.Records() {
		if rec.Address.Namespace == "pi.entry.label" {
			e.Labels++
		}
	}
	return e
}

func (s *script) check(err error) {
	if err != nil {
		s.w.TB.Fatal(err)
	}
}

// essence is a branch without ids, times and the answers that failed.
func essence(branch []store.Entry) []string {
	lines := make([]string, 0, len(branch))
	for _, e := range branch {
		line := string(e.Type) + " " + e.CustomType
		if m := e.Message(); m != nil {
			line = fmt.Sprintf("%s %s %q", m.Role(), m.StopReason(), m.Text())
		}
		lines = append(lines, line)
	}
	return slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "assistant error") })
}
