package enginetest

import (
	"context"
	"errors"
	"slices"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Scenario is a history that a crash at any of its commits must not change. Its
// prompts are sent one after the other, each driven to its end.
type Scenario struct {
	Name    string
	Prompts []string
	Setup   func(*World)
}

// Scenarios are the histories of the crash matrix.
func Scenarios() []Scenario {
	replies := func(r ...Reply) func(*World) {
		return func(w *World) { w.Model.Reply = Sequence(r...) }
	}
	return []Scenario{
		{"one run", []string{"hi"}, replies(Say("hello ", "you"))},
		{"two runs", []string{"one", "two"}, func(w *World) { w.Model.Reply = Echo }},
		{"a retry that succeeds", []string{"hi"}, replies(Fail("overloaded"), Say("ok"))},
		{"a failure with content, then success", []string{"hi"}, replies(Reply{Chunks: []string{"par"}, Error: "502 bad gateway"}, Say("ok"))},
		{"retries that run out", []string{"hi"}, func(w *World) {
			w.Options.Retry.MaxRetries = 2
			w.Model.Reply = Sequence(Fail("500"))
		}},
		{"a permanent failure, then another run", []string{"one", "two"}, func(w *World) {
			w.Model.Reply = func(n int, req effect.Request) Reply {
				if LastPrompt(req) == "one" {
					return Refuse("invalid request", 400, 0)
				}
				return Echo(n, req)
			}
		}},
		{"a genuine length", []string{"hi"}, replies(Reply{
			Chunks: []string{"cut"}, Stop: message.StopLength, Usage: &message.Usage{Input: 100, Output: 8_000, TotalTokens: 8_100},
		})},
		{"an overflow", []string{"hi"}, replies(Fail("prompt is too long"))},
		{"a stream that vanishes, then success", []string{"hi"}, replies(Reply{Chunks: []string{"par"}, Vanish: true}, Say("ok"))},
		{"injected context", []string{"hi"}, func(w *World) {
			w.Model.Reply = Sequence(Reply{Thinking: "hm", Chunks: []string{"ok"}})
			w.Options.Hooks.BeforeRun = []func(context.Context, engine.BeforeRun) ([]message.Message, error){
				func(context.Context, engine.BeforeRun) ([]message.Message, error) {
					return []message.Message{message.NewUser("context", nil, w.Clock.Now())}, nil
				},
			}
		}},
	}
}

// Echo answers with what was asked last.
func Echo(_ int, req effect.Request) Reply { return Say("you said ", LastPrompt(req)) }

// LastPrompt is the text of the newest user message of a request.
func LastPrompt(req effect.Request) string {
	for _, m := range slices.Backward(req.Messages) {
		if m.Role() == message.RoleUser {
			return m.Text()
		}
	}
	return ""
}

// Play goes on with a scenario where its session stands: what is open is driven,
// what was not yet accepted is sent. It returns at the end or with the first
// error of a dying process.
func (w *World) Play(ctx context.Context, prompts []string) error {
	for {
		info, err := w.Lane.InspectExecution(ctx)
		if err != nil {
			return err
		}
		if info.Current != nil {
			if err := w.passes(ctx, info.Current.ID); err != nil {
				return err
			}
			continue
		}
		sent, err := w.sent(ctx, prompts)
		if err != nil {
			return err
		}
		if sent == len(prompts) {
			return nil
		}
		if _, err := w.Lane.Accept(ctx, engine.Request{Text: prompts[sent]}); err != nil {
			return err
		}
	}
}

// passes drives an operation to its end, moving the clock over waits.
func (w *World) passes(ctx context.Context, id string) error {
	for {
		d, err := w.Lane.Drive(ctx, engine.DriveOptions{OperationID: id})
		switch {
		case err != nil:
			return err
		case d.Kind == engine.Settled:
			return nil
		case d.Reason != engine.WaitRetry:
			return errors.New("waits for " + string(d.Reason))
		}
		w.Clock.Advance(*d.NotBefore - w.Clock.Now())
	}
}

// sent counts the prompts that were durably accepted.
func (w *World) sent(ctx context.Context, prompts []string) (int, error) {
	said, err := Conversation(ctx, w.Session)
	n := 0
	for _, s := range said {
		if n < len(prompts) && s.Role == message.RoleUser && s.Text == prompts[n] {
			n++
		}
	}
	return n, err
}

// End is what a scenario came to.
func (w *World) End() (said []Said, end End) {
	w.TB.Helper()
	r := w.View()
	said, err := Conversation(w.TB.Context(), r)
	w.fatal(err)
	end, err = LastEnd(w.TB.Context(), r)
	w.fatal(err)
	return said, end
}

// Settled wants the session to hold nothing but its conversation: every answer
// billed once, nothing of an operation left (spec §3.13).
func (w *World) Settled() {
	w.TB.Helper()
	w.Verify()
	ctx, r := w.TB.Context(), w.View()
	rows, err := r.ScanUsage(ctx, store.UsageQuery{})
	w.fatal(err)
	entries, err := r.ScanEntries(ctx, store.EntryQuery{Type: store.TypeMessage})
	w.fatal(err)
	var answers, billed []string
	for _, e := range entries {
		if e.Message().Role() == message.RoleAssistant {
			answers = append(answers, e.ID)
		}
	}
	for _, row := range rows {
		billed = append(billed, row.EntryID)
	}
	Equal(w.TB, "billed answers", billed, answers)
	for _, rec := range w.Records() {
		if ns := rec.Address.Namespace; rec.Kind == store.KindList || ns == "pi.op.meta" || ns == "pi.op.state" || ns == "pi.pending.entry" {
			w.TB.Fatalf("%s is left at the end", rec.Address)
		}
	}
}
