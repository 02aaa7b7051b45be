package engine

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// Watch is a snapshot of a lane with the events that come after it: each once, in
// order, none missing and none that the snapshot already shows (spec §5.4).
type Watch struct {
	Snapshot LaneReport
	*subscription
}

// SessionWatch is Watch for all lanes of a session.
type SessionWatch struct {
	Snapshot SessionSnapshot
	*subscription
}

// subscription holds events back until somebody listens.
type subscription struct {
	wants func(op.Event) bool
	off   func()

	mu      sync.Mutex
	buffer  []op.Event
	listen  func(op.Event) // nil until the buffer has been handed over
	stopped bool
}

// Start hands over what was held back, in order and on the caller's goroutine,
// then delivers live; call it once. An event that was held back has no Partial.
func (s *subscription) Start(listen func(Event)) {
	for {
		s.mu.Lock()
		held := s.buffer
		s.buffer = nil
		if len(held) == 0 || s.stopped {
			s.listen = listen
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		for _, e := range held {
			listen(e)
		}
	}
}

// Stop ends the delivery and drops what is held back. A delivery that has begun
// may still end after it.
func (s *subscription) Stop() {
	s.off()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped, s.buffer = true, nil
}

func (s *subscription) deliver(e op.Event) {
	if !s.wants(e) {
		return
	}
	s.mu.Lock()
	listen := s.listen
	if listen == nil && !s.stopped {
		e.Partial = nil // it would tell of a later moment
		s.buffer = append(s.buffer, e)
	}
	stopped := s.stopped
	s.mu.Unlock()
	if listen != nil && !stopped {
		listen(e)
	}
}

// Report reads the lane as Inspect does, with what this process knows better
// than its store: who drives the lane, the answer as it grows, tools as they
// run (spec §5.4).
func (l *Lane) Report(ctx context.Context, snapshot bool) (LaneReport, error) {
	read := func(q store.Queries) (LaneReport, error) {
		l.mu.Lock()
		w := l.work(snapshot)
		l.mu.Unlock()
		return l.report(ctx, q, w, snapshot)
	}
	r, err := onLine(ctx, l, func(m *store.Mutator) (LaneReport, error) { return read(m) })
	var fault *store.Fault
	if errors.As(err, &fault) && snapshot {
		// Nothing changes any more, and what is stored can still be read.
		if r, err = read(l.h.session); err == nil {
			r.Snapshot.Faulted = true
		}
	}
	return r, err
}

func (l *Lane) report(ctx context.Context, q store.Queries, w work, snapshot bool) (LaneReport, error) {
	var r LaneReport
	err := r.read(ctx, q, l.name, w, snapshot)
	return r, err
}

// work is the live side of the lane; the lock is held.
func (l *Lane) work(contents bool) work {
	w := work{owner: Owner{Live: l.active != nil, Missing: l.missing}, here: l.active != nil}
	if !contents {
		return w
	}
	w.running = slices.Clone(l.running)
	if l.draft != nil {
		w.responseID, w.streaming = l.draft.responseID, l.draft.message()
	}
	return w
}

// Watch takes a snapshot of the lane and holds back its later events, and those
// that concern every lane, until Start (spec §5.4).
func (l *Lane) Watch(ctx context.Context) (*Watch, error) {
	wants := func(e op.Event) bool { return e.Lane == l.name || e.Lane == "" || e.Type == op.EventUsage }
	// A caller that stopped waiting would leave a watcher behind.
	ctx = context.WithoutCancel(ctx)
	return onLine(ctx, l, func(m *store.Mutator) (*Watch, error) {
		s := &subscription{wants: wants}
		l.mu.Lock()
		w := l.work(true)
		s.off = l.h.events.join(s.deliver)
		l.mu.Unlock()
		r, err := l.report(ctx, m, w, true)
		if err != nil {
			s.Stop()
			return nil, err
		}
		return &Watch{r, s}, nil
	})
}

// SessionSnapshot is what a session's lanes do at one moment (spec §5.4).
type SessionSnapshot struct {
	Lanes   []ExecutionInfo // by name
	Faulted bool
}

// WatchSession takes a snapshot of all lanes and holds back every later event
// until Start (spec §5.4).
func (h *Harness) WatchSession(ctx context.Context) (*SessionWatch, error) {
	ctx = context.WithoutCancel(ctx)
	for {
		lanes := h.Lanes()
		w, err := h.watchLanes(ctx, lanes, nil)
		if w != nil || err != nil {
			return w, err
		}
	}
}

// watchLanes holds the lines of the lanes, one inside the other and by name, so
// that nothing of any of them changes while all are read. It answers nil when a
// lane was created meanwhile.
func (h *Harness) watchLanes(ctx context.Context, lanes []*Lane, read []ExecutionInfo) (*SessionWatch, error) {
	if len(read) < len(lanes) {
		l := lanes[len(read)]
		return onLine(ctx, l, func(m *store.Mutator) (*SessionWatch, error) {
			info, err := ReadExecution(ctx, m, l.name, l.owner())
			if err != nil {
				return nil, err
			}
			return h.watchLanes(ctx, lanes, append(read, info))
		})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.lanes) != len(lanes) {
		return nil, nil
	}
	s := &subscription{wants: func(op.Event) bool { return true }}
	s.off = h.events.join(s.deliver)
	return &SessionWatch{SessionSnapshot{Lanes: read}, s}, nil
}

// AppendJSON writes the SessionSnapshot of §5.4.
func (s SessionSnapshot) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"lanes":[`...)
	for i, lane := range s.Lanes {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"name":`...)
		dst = rawjson.AppendQuote(dst, lane.Lane)
		dst = append(dst, `,"leafId":`...)
		dst, _ = lane.LeafID.AppendJSON(dst)
		dst = append(dst, `,"operation":`...)
		if c := lane.Current; c != nil {
			dst = c.appendStatus(dst)
			if c.Suspended != nil {
				dst = c.Suspended.append(append(dst, `,"suspended":`...))
			}
		} else {
			dst = append(dst, "null"...)
		}
		dst = append(dst, '}')
	}
	dst = append(dst, `],"faulted":`...)
	if s.Faulted {
		return append(dst, "true}"...), nil
	}
	return append(dst, "false}"...), nil
}

func (c CurrentOperation) appendStatus(dst []byte) []byte {
	dst = append(dst, `{"id":`...)
	dst = rawjson.AppendQuote(dst, c.ID)
	dst = append(dst, `,"kind":`...)
	dst = rawjson.AppendQuote(dst, string(c.Kind))
	dst = append(dst, `,"status":`...)
	return append(rawjson.AppendQuote(dst, string(c.Status)), '}')
}
