package engine

import "context"

// Prompt accepts a run and drives it to its end, waiting here through retries;
// it composes Accept and Drive and nothing else (spec §5.1).
func (l *Lane) Prompt(ctx context.Context, r Request) (DriveOutcome, error) {
	admission, err := l.Accept(ctx, r)
	if err != nil {
		return DriveOutcome{}, err
	}
	for {
		d, err := l.Drive(ctx, DriveOptions{OperationID: admission.OperationID, WaitForRetry: true})
		retry := d.Kind == Waiting && d.Reason == WaitRetry
		if err != nil || !retry {
			return d, err
		}
	}
}

// Resume drives the lane's open operation; a lane without one is
// *NothingToResume (spec §5.1).
func (l *Lane) Resume(ctx context.Context) (DriveOutcome, error) {
	info, err := l.InspectExecution(ctx)
	if err != nil {
		return DriveOutcome{}, err
	}
	if info.Current == nil {
		return DriveOutcome{}, &NothingToResume{Lane: l.name}
	}
	return l.Drive(ctx, DriveOptions{OperationID: info.Current.ID, WaitForRetry: true})
}
