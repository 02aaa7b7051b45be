package engine

import (
	"context"

	"github.com/drover-run/drover/pkg/engine/op"
)

// Prompt accepts a run and drives it to its end, waiting here through retries;
// it composes Accept and Drive and nothing else (spec §5.1).
func (l *Lane) Prompt(ctx context.Context, r Request) (DriveOutcome, error) {
	admission, err := l.Accept(ctx, r)
	if err != nil {
		return DriveOutcome{}, err
	}
	return l.complete(ctx, admission.OperationID)
}

// Resume drives the lane's open operation; a lane without one is
// *NothingToResume, an operation that has to wait for what is not registered
// *MissingIdentities (spec §4.4, §5.1).
func (l *Lane) Resume(ctx context.Context) (DriveOutcome, error) {
	info, err := l.InspectExecution(ctx)
	if err != nil {
		return DriveOutcome{}, err
	}
	if info.Current == nil {
		return DriveOutcome{}, &NothingToResume{Lane: l.name}
	}
	l.h.events.emit(ctx, op.Event{Type: op.EventRunResume, Lane: l.name, RunID: info.Current.ID})
	d, err := l.complete(ctx, info.Current.ID)
	if err == nil && d.Reason == WaitMissing {
		return DriveOutcome{}, &MissingIdentities{Lane: l.name, Missing: *d.Missing}
	}
	return d, err
}

// complete drives an operation until it settles or waits for more than time: a
// pass that it only joined may have ended earlier by its own options.
func (l *Lane) complete(ctx context.Context, id string) (DriveOutcome, error) {
	for {
		d, err := l.Drive(ctx, DriveOptions{OperationID: id, WaitForRetry: true})
		if err != nil || d.Kind == Settled || d.Kind == Waiting && d.Reason != WaitRetry {
			return d, err
		}
	}
}
