package store

import (
	"context"
	"sync"
)

// Line runs jobs one at a time in the order they were admitted (spec §4.3). A
// lane, a session's commits and a harness's settings each have one. The zero
// value is ready. Waiters park on channels, so tests can see them.
type Line struct {
	mu     sync.Mutex
	queue  []lineJob
	busy   bool
	sealed error
	idle   chan struct{} // closed when a sealed line has drained
}

type lineJob struct {
	run    func() error
	ticket *Ticket
}

// Ticket is the promise of one admitted job.
type Ticket struct {
	done chan struct{}
	err  error
}

// Wait returns the job's error once it has run, or the context's when the
// caller stops waiting; the job then runs all the same.
func (t *Ticket) Wait(ctx context.Context) error {
	select {
	case <-t.done:
		return t.err
	default:
	}
	select {
	case <-t.done:
		return t.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func refused(err error) *Ticket {
	t := &Ticket{done: make(chan struct{}), err: err}
	close(t.done)
	return t
}

// Enqueue admits a job and returns at once. Jobs of one goroutine keep their
// order.
func (l *Line) Enqueue(run func() error) *Ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sealed != nil {
		return refused(l.sealed)
	}
	t := &Ticket{done: make(chan struct{})}
	l.queue = append(l.queue, lineJob{run, t})
	if !l.busy {
		l.busy = true
		go l.drain()
	}
	return t
}

// Do admits a job and waits for it. On an idle line the job runs on the
// caller's goroutine; a context that ends first leaves a queued job to run
// without its caller.
func (l *Line) Do(ctx context.Context, run func() error) error {
	l.mu.Lock()
	if l.sealed != nil {
		err := l.sealed
		l.mu.Unlock()
		return err
	}
	if l.busy {
		t := &Ticket{done: make(chan struct{})}
		l.queue = append(l.queue, lineJob{run, t})
		l.mu.Unlock()
		return t.Wait(ctx)
	}
	l.busy = true
	l.mu.Unlock()
	defer l.release()
	return run()
}

// release hands jobs that queued up behind a caller-run job to a drainer.
func (l *Line) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) > 0 {
		go l.drain()
		return
	}
	l.rest()
}

func (l *Line) drain() {
	for {
		l.mu.Lock()
		if len(l.queue) == 0 {
			l.rest()
			l.mu.Unlock()
			return
		}
		job := l.queue[0]
		l.queue[0] = lineJob{}
		l.queue = l.queue[1:]
		l.mu.Unlock()
		job.ticket.err = job.run()
		close(job.ticket.done)
	}
}

// rest marks the line idle; the lock is held.
func (l *Line) rest() {
	l.busy = false
	l.queue = nil
	if l.idle != nil {
		close(l.idle)
		l.idle = nil
	}
}

// Seal refuses every later job with err and returns a channel that closes once
// the admitted ones have run. The first seal wins; a later one waits the same.
func (l *Line) Seal(err error) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sealed == nil {
		l.sealed = err
	}
	if !l.busy {
		done := make(chan struct{})
		close(done)
		return done
	}
	if l.idle == nil {
		l.idle = make(chan struct{})
	}
	return l.idle
}
