package engine

import (
	"context"
	"fmt"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
)

// The conveniences add waiting in this process and nothing else: each is an
// acceptance and drives, literally (spec §5.1).

// Prompt accepts a run and drives it to its end.
func (l *Lane) Prompt(ctx context.Context, r Request) (DriveOutcome, error) {
	return l.driveAdmitted(ctx)(l.Accept(ctx, r))
}

// Compact accepts a compaction and drives it to its end.
func (l *Lane) Compact(ctx context.Context, r CompactRequest) (DriveOutcome, error) {
	return l.driveAdmitted(ctx)(l.AcceptCompaction(ctx, r))
}

// Navigate accepts a navigation and drives it to its end.
func (l *Lane) Navigate(ctx context.Context, r NavigateRequest) (DriveOutcome, error) {
	return l.driveAdmitted(ctx)(l.AcceptNavigation(ctx, r))
}

func (l *Lane) driveAdmitted(ctx context.Context) func(Admission, error) (DriveOutcome, error) {
	return func(a Admission, err error) (DriveOutcome, error) {
		if err != nil {
			return DriveOutcome{}, err
		}
		return l.complete(ctx, DriveOptions{OperationID: a.OperationID, WaitForRetry: true})
	}
}

// complete drives an operation until it settles or waits for more than time: a
// pass that it only joined may have ended earlier by its own options.
func (l *Lane) complete(ctx context.Context, o DriveOptions) (DriveOutcome, error) {
	for {
		d, err := l.Drive(ctx, o)
		if err != nil || d.Kind == Settled || d.Kind == Waiting && d.Reason != WaitRetry {
			return d, err
		}
	}
}

// Resume drives the lane's open operation with one poll permit; a lane without
// one is *NothingToResume, an operation that has to wait for what is not
// registered *MissingIdentities (spec §4.4, §5.1).
func (l *Lane) Resume(ctx context.Context) (DriveOutcome, error) {
	info, err := l.InspectExecution(ctx)
	if err != nil {
		return DriveOutcome{}, err
	}
	if info.Current == nil {
		return DriveOutcome{}, &NothingToResume{Lane: l.name}
	}
	if info.Current.Kind == op.KindRun {
		l.h.events.emit(ctx, op.Event{Type: op.EventRunResume, Lane: l.name, RunID: info.Current.ID})
	}
	d, err := l.complete(ctx, DriveOptions{OperationID: info.Current.ID, WaitForRetry: true, PollDeferred: true})
	if err == nil && d.Reason == WaitMissing {
		if d.Why != nil {
			return DriveOutcome{}, d.Why
		}
		return DriveOutcome{}, &MissingIdentities{Lane: l.name, Missing: *d.Missing}
	}
	return d, err
}

// Skill is a named instruction that a user may call up (behaviours of the Agent
// Skills format).
type Skill struct {
	Name, Description string
	Body              string
	// Base is the folder that the skill's relative references start from.
	Base string
}

// Message is the user message that a skill request becomes.
func (s Skill) Message(additional string, now int64) message.Message {
	text := fmt.Sprintf("Use the skill %q. Relative paths in it start at %s.\n\n%s", s.Name, s.Base, s.Body)
	if additional != "" {
		text += "\n\n" + additional
	}
	return message.NewUser(text, nil, now)
}
