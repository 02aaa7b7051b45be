package engine

import (
	"context"
	"errors"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Request asks for a run (spec §5.1). Either Text with Images or Messages says
// what; an empty request is valid only when something waits for the lane's next
// run.
type Request struct {
	// OperationID is minted when it is empty; a caller's own must be a fresh
	// UUIDv7 (spec §1.2).
	OperationID string
	Text        string
	Images      []message.Block
	Messages    []message.Message
	// Configure changes the lane before the acceptance; a refused request changes
	// nothing (D40).
	Configure Configure
}

// Admission is a durably accepted operation (spec §5.1).
type Admission struct {
	OperationID string  `json:"operationId"`
	Kind        op.Kind `json:"kind"`
	StartedAt   int64   `json:"startedAt"` // Unix ms
}

// Accept creates a run durably and starts nothing (spec §3.6). It refuses with
// *LaneBusy, *InvalidMessage or *MissingIdentities, and writes nothing then.
func (l *Lane) Accept(ctx context.Context, r Request) (Admission, error) {
	prompt, err := l.normalize(r)
	if err != nil {
		return Admission{}, err
	}
	if err := l.startBeforeAcceptance(ctx, r.Configure); err != nil {
		return Admission{}, err
	}
	return l.accept(ctx, acceptance{
		id: r.OperationID, kind: op.KindRun, configure: r.Configure,
		check: func(ctx context.Context, q store.Queries, t op.Turn, cfg store.LaneConfiguration) error {
			if len(prompt)+len(t.LaneState.PendingNextRun) == 0 {
				return &InvalidMessage{Lane: l.name, Reason: "there is nothing to send: the prompt is empty"}
			}
			if _, err := l.resolve(cfg); err != nil {
				return err
			}
			return checkContext(ctx, q, t.Leaf)
		},
		plan: func(ctx context.Context, q store.Queries, t op.Turn, id string) (op.Plan, error) {
			waiting, err := l.captured(ctx, q, t)
			if err != nil {
				return op.Plan{}, err
			}
			return op.Accept(t, op.RunRequest{OperationID: id, Prompt: prompt, NextRun: waiting, Settings: l.h.runSettings()})
		},
	})
}

// acceptance is what the three operation kinds do differently when they are
// accepted.
type acceptance struct {
	id        string
	kind      op.Kind
	configure Configure
	// check refuses on the lane line, before any setter changes anything; cfg is
	// the configuration that would hold.
	check func(ctx context.Context, q store.Queries, t op.Turn, cfg store.LaneConfiguration) error
	plan  func(ctx context.Context, q store.Queries, t op.Turn, id string) (op.Plan, error)
}

// accept runs the checks, then the setters, then the acceptance itself (D40). The
// acceptance looks at the lane again: a race has exactly one winner (spec §3.6).
func (l *Lane) accept(ctx context.Context, a acceptance) (Admission, error) {
	if err := l.h.admission(); err != nil {
		return Admission{}, err
	}
	if err := l.checkOperationID(a.id); err != nil {
		return Admission{}, err
	}
	if err := l.h.session.Check(ctx); err != nil {
		return Admission{}, err
	}
	// One request at a time, or a refused one could have set the lane (D40).
	select {
	case l.accepts <- struct{}{}:
		defer func() { <-l.accepts }()
	case <-ctx.Done():
		return Admission{}, context.Cause(ctx)
	}
	if err := l.preflight(ctx, a); err != nil {
		return Admission{}, err
	}
	if err := l.Configure(ctx, a.configure); err != nil {
		return Admission{}, err
	}
	if a.id == "" {
		a.id = l.h.session.IDs().NewID()
	}
	return decide(ctx, l, func(ctx context.Context, q store.Queries, t op.Turn) (op.Plan, Admission, error) {
		if err := l.busy(t); err != nil {
			return op.Plan{}, Admission{}, err
		}
		plan, err := a.plan(ctx, q, t, a.id)
		return plan, Admission{OperationID: a.id, Kind: a.kind, StartedAt: t.Now}, err
	})
}

func (l *Lane) checkOperationID(id string) error {
	if id == "" {
		return nil
	}
	if _, err := store.IDTime(id); err != nil {
		return &InvalidMessage{Lane: l.name, Reason: "operation " + err.Error()}
	}
	return nil
}

// normalize turns the request into messages with their entry ids; it needs no
// state.
func (l *Lane) normalize(r Request) ([]op.Placed, error) {
	if at := rawjson.ValidUTF8([]byte(r.Text)); at >= 0 {
		return nil, &InvalidMessage{Lane: l.name, Reason: (&message.UTF8Error{Offset: at}).Error()}
	}
	messages := r.Messages
	if r.Text != "" || len(r.Images) > 0 {
		messages = append([]message.Message{message.NewUser(r.Text, r.Images, l.h.opts.Now())}, messages...)
	}
	placed := make([]op.Placed, len(messages))
	for i, m := range messages {
		m, err := l.checkMessage(m)
		if err != nil {
			return nil, err
		}
		placed[i] = op.PlaceMessage(l.h.session.IDs().NewID(), m)
	}
	return placed, nil
}

// checkMessage normalizes a message that shall be placed on the lane, or refuses it.
func (l *Lane) checkMessage(m message.Message) (message.Message, error) {
	if len(m) > store.MaxPayload {
		return nil, &InvalidMessage{Lane: l.name, Reason: (&store.TooLarge{Size: int64(len(m))}).Error()}
	}
	m, err := message.Normalize(m, l.h.opts.Now())
	if err != nil {
		return nil, &InvalidMessage{Lane: l.name, Reason: err.Error()}
	}
	return m, nil
}

// preflight checks on the lane line all that can refuse the request, before the
// setters change anything (D40).
func (l *Lane) preflight(ctx context.Context, a acceptance) error {
	return l.h.session.Mutate(ctx, l.name, func(m *store.Mutator) error {
		t, err := l.load(ctx, m)
		if err != nil {
			return err
		}
		if err := l.busy(t); err != nil {
			return err
		}
		cfg, err := l.Configuration(ctx)
		if err != nil {
			return err
		}
		return a.check(ctx, m, t, a.configure.apply(cfg))
	})
}

// busy refuses a lane that runs an operation, or that an idle callback holds.
func (l *Lane) busy(t op.Turn) error {
	if t.State != nil {
		return &LaneBusy{Lane: l.name, OperationID: t.Operation.OperationID, Kind: t.Operation.Intent.Kind}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.callback {
		return &LaneBusy{Lane: l.name}
	}
	return nil
}

// captured dereferences what waits for the lane's next run.
func (l *Lane) captured(ctx context.Context, q store.Queries, t op.Turn) ([]op.Placed, error) {
	var placed []op.Placed
	for _, id := range t.LaneState.PendingNextRun {
		content, err := required(ctx, q, l.name, store.Pending(id))
		if err != nil {
			return nil, err
		}
		placed = append(placed, op.Placed{EntryID: id, Content: content})
	}
	return placed, nil
}

// resolve finds the model and tools of a configuration, or says what is missing
// (spec §4.4).
func (l *Lane) resolve(cfg store.LaneConfiguration) (effect.Model, error) {
	refusal := &MissingIdentities{Lane: l.name, Missing: op.Missing{Tools: []string{}}}
	model, err := l.h.opts.Models.Resolve(cfg.Model)
	var unknown *effect.UnknownModel
	switch {
	case errors.As(err, &unknown):
		refusal.Missing.Model, refusal.Err = cfg.Model.String(), err
	case err != nil:
		return nil, err
	}
	for _, name := range cfg.ActiveToolNames {
		if _, ok := l.h.opts.Tools.Lookup(name); !ok {
			refusal.LackTool(name, l.h.opts.Tools)
		}
	}
	if refusal.Err != nil || len(refusal.Missing.Tools) > 0 {
		return nil, refusal
	}
	return model, nil
}
