package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/drover-run/drover/pkg/telemetry"
)

// SessionOptions complete an open session.
type SessionOptions struct {
	// IDs mints the session's ids; nil means UUIDv7s of the system clock.
	IDs IDSource
	// Closing reads the session for the last time, when nothing more can be
	// committed; what it returns runs after the backend has been closed without
	// an error. A faulted session is not read.
	Closing func(Queries) (closed func())
	// OnClose runs once after the backend has been closed.
	OnClose func()
}

// Session is one open, owned session: its reads, its lane lines and its only
// write surface, Mutate (spec §2.8). All methods are safe for concurrent use.
type Session struct {
	Queries
	backend Backend
	ids     IDSource
	closing func(Queries) func()
	onClose func()
	commits Line
	spare   sync.Pool // of *commit

	mu     sync.Mutex
	lanes  map[string]*Line
	sealed error
	fault  *Fault
	faults []func(error)
	told   func(lane string) telemetry.Context // nil: commits are not told of
	closed chan struct{}                       // non-nil once Close began; closed when it ended
	err    error                               // of Close
}

// NewSession serves a backend as a session.
func NewSession(b Backend, o SessionOptions) *Session {
	if o.IDs == nil {
		o.IDs = NewIDs(SystemNow, nil)
	}
	return &Session{Queries: b, backend: b, ids: o.IDs, closing: o.Closing, onClose: o.OnClose, lanes: make(map[string]*Line)}
}

// IDs mints the session's ids (spec §1.2).
func (s *Session) IDs() IDSource { return s.ids }

// Check reports a store that was lost to this owner (D12). A loss faults the
// session; a check that could not be made does not.
func (s *Session) Check(ctx context.Context) error {
	err := s.backend.Check(ctx)
	var lost *Lost
	if errors.As(err, &lost) {
		return s.failed(err)
	}
	return err
}

// line returns the mutation line of a lane (spec §4.3).
func (s *Session) line(lane string) *Line {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.lanes[lane]
	if !ok {
		l = &Line{}
		if s.sealed != nil {
			l.Seal(s.sealed)
		}
		s.lanes[lane] = l
	}
	return l
}

// Mutate runs one complete read, decide, commit job on a lane's line. The
// mutator is valid until fn returns and commits at most once. fn must not call
// another mutating method, wait for the lane, or do outside work (spec §2.8).
// A job that still waits its turn when the session is closed is refused with
// ErrClosed and never runs.
func (s *Session) Mutate(ctx context.Context, lane string, fn func(*Mutator) error) error {
	return s.line(lane).do(ctx, s.job(lane, fn))
}

// Enqueue admits such a job without waiting for it. Jobs that one goroutine
// enqueues run in that order (spec §3.7). An admitted one still runs when the
// session is closed, but not after a fault (spec §4.7, §4.8).
func (s *Session) Enqueue(lane string, fn func(*Mutator) error) *Ticket {
	j := s.job(lane, fn)
	j.ticket.job = j
	s.line(lane).enqueue(&j.ticket)
	return &j.ticket
}

// laneJob is one job of a lane with all that it takes, in one piece: there is one
// for every frame of an answer.
type laneJob struct {
	ticket Ticket // of an enqueued one
	m      Mutator
	fn     func(*Mutator) error
}

func (s *Session) job(lane string, fn func(*Mutator) error) *laneJob {
	return &laneJob{m: Mutator{Queries: s.Queries, session: s, lane: lane}, fn: fn}
}

func (j *laneJob) run() (err error) {
	defer j.m.spent.Store(true)
	defer j.m.session.caught(&err)
	fn := j.fn
	j.fn = nil // whoever keeps the ticket keeps nothing of what it did
	return fn(&j.m)
}

// Mutator is the callback-scoped write capability of one lane job (spec §2.8).
type Mutator struct {
	Queries
	session *Session
	lane    string
	spent   atomic.Bool
}

// Lane names the lane whose line the job holds.
func (m *Mutator) Lane() string { return m.lane }

// ErrMutatorUsed is returned by a second commit, and by one after the job ended.
var ErrMutatorUsed = errors.New("mutator has already been used")

// Commit is the job's only commit; the attempt consumes it. A failure other
// than *InvalidWrite or ErrClosed is a *Fault and faults the session.
func (m *Mutator) Commit(tx Tx) (CommitResult, error) {
	if !m.spent.CompareAndSwap(false, true) {
		return CommitResult{}, ErrMutatorUsed
	}
	c, ok := m.session.spare.Get().(*commit)
	if !ok {
		c = new(commit)
	}
	c.session, c.lane, c.tx = m.session, m.lane, tx
	// It is never interrupted: a caller that stops waiting must not tear a
	// transaction. So it has ended, and what it was made of can be used again.
	err := m.session.commits.do(context.Background(), c)
	res := c.res
	*c = commit{}
	m.session.spare.Put(c)
	return res, err
}

// Trace has every later commit told as a span below what told returns for its
// lane (spec §5.8).
func (s *Session) Trace(told func(lane string) telemetry.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = told
}

// commit is one transaction in the session's commit queue.
type commit struct {
	session *Session
	lane    string
	tx      Tx
	res     CommitResult
}

func (c *commit) run() (err error) {
	s := c.session
	defer s.caught(&err)
	told, err := s.admit()
	if err != nil {
		return err
	}
	if told != nil {
		span := told(c.lane).Start(telemetry.SpanWrite, writeAttrs(c.tx)...)
		defer func() { endWrite(span, c.res, err) }()
	}
	if err := checkKinds(context.Background(), s.backend, c.tx); err != nil {
		return err
	}
	if c.res, err = s.backend.Commit(context.Background(), c.tx); err == nil || refused(err) {
		return err
	}
	return s.failed(err) // before the next commit gets its turn
}

// refused reports an error after which nothing was written for certain.
func refused(err error) bool {
	var invalid *InvalidWrite
	return errors.As(err, &invalid) || errors.Is(err, ErrClosed)
}

// Fail faults the session because of something that must not fail and is no
// commit (spec §4.8). It returns the fault, which is an earlier one if there was.
func (s *Session) Fail(doing string, cause error) error {
	return s.failed(&Fault{Doing: doing, Err: cause})
}

// failed faults the session: later and waiting jobs are refused (spec §4.8).
func (s *Session) failed(cause error) error {
	var fault *Fault
	if !errors.As(cause, &fault) {
		fault = &Fault{Err: cause}
	}
	s.mu.Lock()
	if s.fault == nil {
		s.fault = fault
	}
	fault = s.fault
	listeners := s.faults
	s.faults = nil
	if s.sealed == nil {
		s.sealed = fault
	}
	for _, l := range s.lanes {
		l.Abandon(s.sealed)
	}
	s.mu.Unlock()
	for _, f := range listeners {
		f(fault)
	}
	return fault
}

// OnFault registers a function that runs once if a commit fails; after a fault
// it runs at once. It must not block.
func (s *Session) OnFault(f func(error)) {
	s.mu.Lock()
	fault := s.fault
	if fault == nil {
		s.faults = append(s.faults, f)
	}
	s.mu.Unlock()
	if fault != nil {
		f(fault)
	}
}

// admit refuses a commit of a faulted session, and returns what it is told to.
func (s *Session) admit() (told func(string) telemetry.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault != nil {
		return nil, s.fault
	}
	return s.told, nil
}

// Fault returns the failure that faulted the session, nil while it is sound.
func (s *Session) Fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault == nil {
		return nil
	}
	return s.fault
}

// Close refuses new and waiting jobs, lets the running and the enqueued ones
// end, and gives up the store. It is idempotent: every call waits for the same
// end (spec §1.5, §4.7).
func (s *Session) Close() error {
	s.mu.Lock()
	if s.closed != nil {
		done := s.closed
		s.mu.Unlock()
		<-done
		return s.err
	}
	s.closed = make(chan struct{})
	if s.sealed == nil {
		s.sealed = ErrClosed
	}
	var drained []<-chan struct{}
	for _, l := range s.lanes {
		drained = append(drained, l.Seal(s.sealed))
	}
	s.mu.Unlock()
	for _, d := range drained {
		<-d
	}
	<-s.commits.Seal(ErrClosed) // idle: only lane jobs commit
	closed := func() {}
	if s.closing != nil && s.Fault() == nil {
		closed = s.closing(s.Queries)
	}
	if err := s.backend.Close(); err != nil {
		s.err = fmt.Errorf("close session: %w", err)
	} else {
		closed()
	}
	if s.onClose != nil {
		s.onClose()
	}
	close(s.closed)
	return s.err
}
