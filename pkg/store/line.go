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
	first  *Ticket // of the admitted jobs that have not started
	last   *Ticket
	busy   bool
	sealed error
	idle   chan struct{} // closed when a sealed line has drained
}

// job is the work of a ticket: an interface, so that a job that needs memory of
// its own takes no second piece for a closure.
type job interface{ run() error }

type jobFunc func() error

func (f jobFunc) run() error { return f() }

// Ticket is the promise of one admitted job.
type Ticket struct {
	line   *Line
	job    job
	waited bool // admitted by Do: its caller waits for it
	next   *Ticket

	// The line's lock guards these.
	ended bool
	err   error
	done  chan struct{} // made by the first waiter
}

// Wait returns the job's error once it has run, or the context's when the
// caller stops waiting; the job then runs all the same.
func (t *Ticket) Wait(ctx context.Context) error {
	t.line.mu.Lock()
	if t.ended {
		t.line.mu.Unlock()
		return t.err
	}
	if t.done == nil {
		t.done = make(chan struct{})
	}
	done := t.done
	t.line.mu.Unlock()
	select {
	case <-done:
		return t.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// end tells the waiters; the line's lock is held.
func (t *Ticket) end(err error) {
	t.ended, t.err, t.job = true, err, nil
	if t.done != nil {
		close(t.done)
	}
}

// Enqueue admits a job and returns at once. Jobs of one goroutine keep their
// order.
func (l *Line) Enqueue(run func() error) *Ticket {
	t := &Ticket{job: jobFunc(run)}
	l.enqueue(t)
	return t
}

// enqueue admits a ticket that has its job.
func (l *Line) enqueue(t *Ticket) {
	t.line = l
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sealed != nil {
		t.end(l.sealed)
		return
	}
	l.push(t)
	if !l.busy {
		l.busy = true
		go l.drain()
	}
}

// Do admits a job and waits for it. On an idle line the job runs on the
// caller's goroutine; a context that ends first leaves a queued job to run
// without its caller.
func (l *Line) Do(ctx context.Context, run func() error) error { return l.do(ctx, jobFunc(run)) }

func (l *Line) do(ctx context.Context, j job) error {
	l.mu.Lock()
	if l.sealed != nil {
		err := l.sealed
		l.mu.Unlock()
		return err
	}
	if l.busy {
		t := &Ticket{line: l, job: j, waited: true}
		l.push(t)
		l.mu.Unlock()
		return t.Wait(ctx)
	}
	l.busy = true
	l.mu.Unlock()
	defer l.release()
	return j.run()
}

// push queues an admitted job; the lock is held.
func (l *Line) push(t *Ticket) {
	if l.first == nil {
		l.first = t
	} else {
		l.last.next = t
	}
	l.last = t
}

// pop takes the next job, or marks the line idle; the lock is held.
func (l *Line) pop() *Ticket {
	t := l.first
	if t == nil {
		l.busy = false
		if l.idle != nil {
			close(l.idle)
			l.idle = nil
		}
		return nil
	}
	l.first, t.next = t.next, nil
	if l.first == nil {
		l.last = nil
	}
	return t
}

// release hands jobs that queued up behind a caller-run job to a drainer.
func (l *Line) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first != nil {
		go l.drain()
		return
	}
	l.pop()
}

func (l *Line) drain() {
	l.mu.Lock()
	t := l.pop()
	l.mu.Unlock()
	for t != nil {
		err := t.job.run()
		l.mu.Lock()
		t.end(err)
		t = l.pop()
		l.mu.Unlock()
	}
}

// Seal closes the line in good order (spec §4.7): every later job and every job
// that waits its turn inside Do is refused with err and never runs; the running
// job ends and jobs of Enqueue still run. The returned channel closes once they
// have. The first seal's error stays.
func (l *Line) Seal(err error) <-chan struct{} {
	return l.seal(err, func(t *Ticket) bool { return !t.waited })
}

// Abandon closes the line after a fault (spec §4.8): no job that has not
// started runs. The returned channel closes once the running one has ended.
func (l *Line) Abandon(err error) <-chan struct{} {
	return l.seal(err, func(*Ticket) bool { return false })
}

func (l *Line) seal(err error, keep func(*Ticket) bool) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sealed == nil {
		l.sealed = err
	}
	waiting := l.first
	l.first, l.last = nil, nil
	for t := waiting; t != nil; {
		next := t.next
		t.next = nil
		if keep(t) {
			l.push(t)
		} else {
			t.end(l.sealed)
		}
		t = next
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
