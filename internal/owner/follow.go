package owner

import (
	"context"
	"errors"
	"sync"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/store"
)

// abort cancels an operation durably and, unless the client wants only that,
// makes sure that it is driven to its end (spec §4.6). An operation that ended
// before is answered with its outcome.
func (s *Server) abort(ctx context.Context, r request) ([]byte, error) {
	lane, err := s.lane(r)
	if err != nil {
		return nil, err
	}
	id, err := r.mintedID("operationId")
	if err != nil {
		return nil, err
	}
	cancelled, err := lane.RequestAbort(ctx, id)
	var mismatch *engine.OperationMismatch
	if errors.As(err, &mismatch) {
		return ended(ctx, lane, id)
	}
	if err != nil {
		return nil, err
	}
	if !r.bool("requestOnly") && s.work.begin() {
		done := s.intents.promise(lane.Name()) // before the client can ask for the outcome
		s.running.Go(func() {
			defer s.work.end()
			defer done()
			// Its outcome is in the session; who asks waits for it.
			_ = s.guard(func() error {
				_, err := lane.Drive(s.ctx, engine.DriveOptions{OperationID: id})
				return err
			})
		})
	}
	return cancelled.AppendJSON(nil)
}

// ended answers an abort that came too late.
func ended(ctx context.Context, lane *engine.Lane, id string) ([]byte, error) {
	outcome, err := outcomeOf(ctx, lane, id)
	if err != nil {
		return nil, err
	}
	o := newObject()
	o.str("operationId", id)
	o.bool("newlyRequested", false)
	o.raw("steer", []byte("[]"))
	o.raw("followUp", []byte("[]"))
	err = o.value("outcome", outcome)
	return o.end(), err
}

// outcomeOf is how an operation ended that is not open any more; one that is not
// the latest of its lane is *engine.OperationMismatch.
func outcomeOf(ctx context.Context, lane *engine.Lane, id string) (*engine.Outcome, error) {
	d, err := lane.Drive(ctx, engine.DriveOptions{OperationID: id})
	return d.Outcome, err
}

// wait answers when the lanes are idle, or have an open operation that nobody
// drives; with operationId, when that operation has ended.
func (s *Server) wait(ctx context.Context, r request) ([]byte, error) {
	if r.raw("operationId") != nil {
		return s.waitOperation(ctx, r)
	}
	lanes, err := s.lanes(r)
	if err != nil {
		return nil, err
	}
	infos := make([]store.Appender, len(lanes))
	for i, l := range lanes {
		if infos[i], err = s.undriven(ctx, l, ""); err != nil {
			return nil, err
		}
	}
	return lanesJSON(infos)
}

func lanesJSON(lanes []store.Appender) (dst []byte, err error) {
	dst = append(dst, `{"lanes":[`...)
	for i, l := range lanes {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = l.AppendJSON(dst); err != nil {
			return nil, err
		}
	}
	return append(dst, "]}"...), nil
}

// undriven waits until nobody in this process drives the lane, or means to;
// operationID, when given, is the only operation that is waited for.
func (s *Server) undriven(ctx context.Context, l *engine.Lane, operationID string) (engine.ExecutionInfo, error) {
	for {
		before, _ := s.intents.held(l.Name())
		info, err := l.WaitForDrive(ctx)
		if err != nil || info.Current == nil || (operationID != "" && info.Current.ID != operationID) {
			return info, err
		}
		after, changed := s.intents.held(l.Name())
		switch {
		case changed == nil && before == after:
			return info, nil
		case changed == nil:
			continue // what was seen may be over by now
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return info, context.Cause(ctx)
		}
	}
}

func (s *Server) waitOperation(ctx context.Context, r request) ([]byte, error) {
	lane, err := s.lane(r)
	if err != nil {
		return nil, err
	}
	id, err := r.mintedID("operationId")
	if err != nil {
		return nil, err
	}
	info, err := s.undriven(ctx, lane, id)
	if err != nil {
		return nil, err
	}
	o := newObject()
	if info.Current != nil && info.Current.ID == id {
		o.raw("outcome", []byte("null"))
		return o.end(), nil
	}
	outcome, err := outcomeOf(ctx, lane, id)
	if err != nil {
		return nil, err
	}
	err = o.value("outcome", outcome)
	return o.end(), err
}

// inspect reports the lanes as the owner knows them (spec §5.4).
func (s *Server) inspect(ctx context.Context, r request) ([]byte, error) {
	lanes, err := s.lanes(r)
	if err != nil {
		return nil, err
	}
	reports := make([]store.Appender, len(lanes))
	for i, l := range lanes {
		if reports[i], err = l.Report(ctx, r.bool("snapshot")); err != nil {
			return nil, err
		}
	}
	return lanesJSON(reports)
}

// watch sends a snapshot and then every event, until the client has had enough or
// the owner closes; it always ends with an error.
func (s *Server) watch(ctx context.Context, r request) error {
	snapshot, start, stop, err := s.subscribe(ctx, r)
	if err != nil {
		return err
	}
	defer stop()
	b := &backlog{limit: s.t.backlog, ready: make(chan struct{}, 1)}
	b.put(r, "snapshot", snapshot)
	start(func(e engine.Event) { b.put(r, "event", e) })
	for {
		select {
		case <-b.ready:
		case <-ctx.Done():
		}
		over := ctx.Err()
		text, err := b.take()
		if _, failed := r.conn.Write(text); failed != nil {
			return failed
		}
		if err != nil {
			return err
		}
		if over != nil {
			return over
		}
	}
}

// subscribe watches the lane that the request names, or the whole session.
func (s *Server) subscribe(ctx context.Context, r request) (snapshot store.Appender, start func(func(engine.Event)), stop func(), err error) {
	if r.raw("lane") == nil {
		w, err := s.o.Harness.WatchSession(ctx)
		if err != nil {
			return nil, nil, nil, err
		}
		return w.Snapshot, w.Start, w.Stop, nil
	}
	lane, err := s.lane(r)
	if err != nil {
		return nil, nil, nil, err
	}
	w, err := lane.Watch(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	return w.Snapshot.Snapshot, w.Start, w.Stop, nil
}

// backlog holds the lines that a watcher has not been sent yet, so that the run
// never waits for one.
type backlog struct {
	limit int
	ready chan struct{}

	mu   sync.Mutex
	text []byte
	err  error // why nothing more is taken
}

func (b *backlog) put(r request, kind string, v store.Appender) {
	o := newObject()
	o.raw("id", r.id)
	err := o.value(kind, v)
	var text []byte
	if err == nil {
		text, err = asLine(o.end())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.err != nil:
	case err != nil:
		b.err = err
	case len(b.text) > 0 && len(b.text)+len(text) > b.limit:
		b.err = &RemoteError{Code: "slow_reader", Message: "the watcher is too far behind"}
	default:
		b.text = append(b.text, text...)
	}
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

func (b *backlog) take() ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := b.text
	b.text = nil
	return text, b.err
}
