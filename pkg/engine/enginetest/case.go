package enginetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/storetest"
)

// Case is a history of one lane that must come to the same end wherever its
// processes die. Everything around it is a function of what was said: a model or a
// user that is asked again answers as the first time.
type Case struct {
	Name  string
	Tools []*Tool // active on the lane
	Setup func(*World)
	// Script holds what the model says to a prompt, one line per turn; its last line
	// is repeated, and a prompt that is not in it is echoed.
	Script map[string][]Line
	// Summary answers requests for a summary; nil says "what was said".
	Summary Line
	// Past happens before the processes that die.
	Past []Act
	Acts []Act
	// At is done once in every process, parked before the first breakpoint of a kind.
	At map[string]func(*World) error
	// Waits is done before what is waited for has come.
	Waits map[engine.WaitReason]func(*World) error
	Differs
}

// Differs is what a death may change in the end of a case, and nothing else: an
// answer that it interrupted may stand in the tree as an error.
type Differs struct {
	// Results are the ways in which a call may end instead, by call id.
	Results map[string][]string
	// Cut: an aborted answer may be shorter, and cost less.
	Cut bool
	// Capped: attempts are used up, so that there are as many errors as without.
	Capped bool
	// Codes are the error codes with which the last operation may end instead.
	Codes []string
	// Else are the branches one of which the history may leave instead.
	Else []string
}

func branch(lines ...string) string { return strings.Join(lines, "\n") }

// Line is one answer of a script.
type Line = func(*World) Reply

// The lines of scripts.
func say(chunks ...string) Line { return func(*World) Reply { return Say(chunks...) } }

func ask(calls ...message.Block) Line { return func(*World) Reply { return Ask(calls...) } }

// first answers otherwise the first time, whichever process asks.
func first(r Reply, then Line) Line {
	key := new(byte) // each line has its own
	return func(w *World) Reply {
		if w.Once(fmt.Sprintf("%p", key)) {
			return r
		}
		return then(w)
	}
}

// Once is true the first time.
func (w *World) Once(key string) bool {
	if w.once[key] {
		return false
	}
	if w.once == nil {
		w.once = map[string]bool{}
	}
	w.once[key] = true
	return true
}

// ID is an id that stays the same in every process.
func (w *World) ID(key string) string {
	if w.ids == nil {
		w.ids, w.mint = map[string]string{}, store.NewIDs(w.Clock.Now, rand.NewChaCha8([32]byte{1}))
	}
	if w.ids[key] == "" {
		w.ids[key] = w.mint.NewID()
	}
	return w.ids[key]
}

// Act is something that a user does, again after a death, with the same id.
type Act struct {
	name string
	do   func(ctx context.Context, w *World, id string) error
	// operation: the act is over when the operation of its id is.
	operation bool
	// settles: it is over when the lane is idle.
	settles bool
}

// Prompt sends a message.
func Prompt(text string) Act {
	return Act{"prompt " + text, func(ctx context.Context, w *World, id string) error {
		_, err := w.Lane.Accept(ctx, engine.Request{OperationID: id, Text: text})
		return err
	}, true, false}
}

// Compact compacts the lane.
func Compact() Act {
	return Act{"compact", func(ctx context.Context, w *World, id string) error {
		_, err := w.Lane.AcceptCompaction(ctx, engine.CompactRequest{OperationID: id, CustomInstructions: "be brief"})
		return err
	}, true, false}
}

// Navigate moves the lane to the entry that says text, to the root when it is "".
func Navigate(text string, summarize bool, label string) Act {
	return Act{"navigate to " + text, func(ctx context.Context, w *World, id string) error {
		target, err := w.said(ctx, text)
		if err != nil {
			return err
		}
		_, err = w.Lane.AcceptNavigation(ctx, engine.NavigateRequest{OperationID: id, Target: target, Summarize: summarize, Label: label})
		return err
	}, true, false}
}

// accepted makes of an operation only its acceptance: what comes after it drives.
func accepted(a Act) Act {
	accept := a.do
	a.operation = false
	a.do = func(ctx context.Context, w *World, id string) error {
		info, err := w.Lane.InspectExecution(ctx)
		if err != nil || info.Current != nil || info.LastResult != nil && info.LastResult.OperationID == id {
			return err
		}
		return accept(ctx, w, id)
	}
	return a
}

// aborts cancels what is open and drives it to its end.
func aborts() Act {
	return Act{"abort", func(_ context.Context, w *World, _ string) error {
		w.meanwhile().abort()
		return nil
	}, false, true}
}

// Do is an act that may be repeated.
func Do(name string, do func(ctx context.Context, w *World, id string) error) Act {
	return Act{name, do, false, false}
}

func (w *World) said(ctx context.Context, text string) (store.LeafID, error) {
	if text == "" {
		return "", nil
	}
	entries, err := w.Session.ScanEntries(ctx, store.EntryQuery{Type: store.TypeMessage})
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if e.Message().Text() == text {
			return store.LeafID(e.ID), nil
		}
	}
	return "", fmt.Errorf("nobody said %q", text)
}

// build makes the world of a case, nothing opened yet; folder is its own.
func (c Case) build(tb testing.TB, newDriver storetest.NewDriver, folder string) *World {
	tb.Helper()
	driver, dir := newDriver(tb)
	cfg := store.LaneConfiguration{Model: Ref, ThinkingLevel: message.ThinkingOff, ActiveToolNames: []string{}}
	for _, t := range c.Tools {
		cfg.ActiveToolNames = append(cfg.ActiveToolNames, t.Name)
	}
	w := newWorld(tb, driver, dir, &cfg)
	w.Quiet = true
	w.Options.Retry.MaxRetries = 4 // for two deaths and what goes wrong by itself
	w.Options.Compaction = op.CompactionSettings{Enabled: true, ReserveTokens: 1_000, KeepRecentTokens: 1}
	w.Toolbox = w.Tools(filepath.Join(folder, "ran"), c.Tools...)
	w.Model.Keeps = true
	w.Model.Reply = func(_ int, req effect.Request) Reply { return c.reply(w, req) }
	if c.Setup != nil {
		c.Setup(w)
	}
	return w
}

func (c Case) reply(w *World, req effect.Request) Reply {
	prompt, turn := where(req)
	if isSummary(req) {
		if c.Summary != nil {
			return c.Summary(w)
		}
		return Say("what was said")
	}
	lines := c.Script[prompt]
	if len(lines) == 0 {
		return Say("re: ", prompt)
	}
	return lines[min(turn, len(lines)-1)](w)
}

// where tells what was asked last, and how many answers were given since.
func where(req effect.Request) (prompt string, turn int) {
	for _, m := range req.Messages {
		switch m.Role() {
		case message.RoleUser:
			prompt, turn = m.Text(), 0
		case message.RoleAssistant:
			turn++
		}
	}
	return prompt, turn
}

// errDied is how a process that a case closed ends.
var errDied = errors.New("the process was closed")

// live is one process of a case.
type live struct {
	c     Case
	w     *World
	death Death
	done  map[string]bool // kinds whose At was done
	steps int
}

// play does what is left of the acts, in a process that dies as planned. It is nil
// at the end of all.
func (c Case) play(ctx context.Context, w *World, acts []Act, d Death) error {
	l := &live{c: c, w: w, death: d, done: map[string]bool{}}
	w.Options.Manual = d.Breakpoint > 0 || len(c.At) > 0
	w.OpenMortal(d)
	defer w.close()
	for i, act := range acts {
		id := w.ID(fmt.Sprintf("act %d of %d: %s", i, len(acts), act.name))
		if w.acted[id] {
			continue
		}
		if err := l.act(ctx, act, id); err != nil {
			return fmt.Errorf("%s: %w", act.name, err)
		}
		w.acted[id] = true
	}
	return nil
}

func (l *live) act(ctx context.Context, act Act, id string) error {
	if !act.operation {
		if err := act.do(ctx, l.w, id); err != nil || !act.settles {
			return err
		}
	}
	for {
		info, err := l.w.Lane.InspectExecution(ctx)
		switch {
		case err != nil:
			return err
		case info.Current != nil:
			err = l.drive(ctx, info.Current.ID)
		case act.settles:
			return nil
		case info.LastResult != nil && info.LastResult.OperationID == id:
			return nil
		default:
			err = act.do(ctx, l.w, id)
		}
		if err != nil {
			return err
		}
	}
}

// drive drives an operation to its end, moving the clock over waits.
func (l *live) drive(ctx context.Context, id string) error {
	o := engine.DriveOptions{OperationID: id}
	for {
		d, err := l.pass(ctx, o)
		if err != nil || d.Kind == engine.Settled {
			return err
		}
		if do := l.c.Waits[d.Reason]; do != nil {
			if err := do(l.w); err != nil {
				return err
			}
		}
		if d.NotBefore != nil {
			l.w.Clock.Advance(max(0, *d.NotBefore-l.w.Clock.Now()))
		}
		o.PollDeferred = d.Reason == engine.WaitDeferred
	}
}

// pass is one drive, by hand where the case says so.
func (l *live) pass(ctx context.Context, o engine.DriveOptions) (d engine.DriveOutcome, err error) {
	if !l.w.Options.Manual {
		return l.w.Lane.Drive(ctx, o)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		d, err = l.w.Lane.Drive(ctx, o)
	}()
	for {
		a, ok := l.w.Lane.PeekAction(ctx)
		if !ok {
			select {
			case <-over:
				return d, err
			default:
				runtime.Gosched() // between two passes nothing is parked
				continue
			}
		}
		if do := l.c.At[a.Kind]; do != nil && !l.done[a.Kind] {
			l.done[a.Kind] = true
			if err := do(l.w); err != nil {
				l.w.close()
				<-over
				return d, err
			}
			continue
		}
		if l.steps++; l.steps == l.death.Breakpoint {
			l.w.close()
			<-over
			return d, errDied
		}
		l.w.steps = l.steps
		l.w.Lane.ExecuteAction(ctx)
	}
}
