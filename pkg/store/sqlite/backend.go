package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/drover-run/drover/pkg/store"
)

// backend is an owned session.
type backend struct {
	reads
	path      string
	now       func() int64
	powerSafe bool
	driver    Driver

	// Only the holder of the near connection touches these.
	id      identity // of the file that the path names
	claim   claim
	renewed time.Time // when the lease was last extended, by the monotonic clock
	stats   store.Stats
	usage   json.RawMessage // of stats, as it stands in the session row
	ids     knownIDs
	broken  error // why nothing is written any more
	// foundWAL is how long the WAL was without the claim, and wrote whether anything
	// was committed since.
	foundWAL int64
	wrote    bool

	stop     chan struct{} // ends the renewal
	stopped  chan struct{} // closed when it has ended
	closing  atomic.Bool
	closed   chan struct{} // closed when Close has ended
	closeErr error
}

// openOwner takes ownership of the session at path.
func openOwner(ctx context.Context, path string, o store.OpenOptions) (*backend, error) {
	return takeOver(ctx, path, o, (*backend).load)
}

// takeOver acquires the lease; start prepares the new owner for its work.
func takeOver(ctx context.Context, path string, o store.OpenOptions, start starter) (*backend, error) {
	if o.Now == nil {
		o.Now = store.SystemNow
	}
	for {
		b, err := tryOwner(ctx, path, o, start)
		var lost *store.Lost
		if !errors.As(err, &lost) {
			return b, err
		}
		// The file was taken away while we waited for it: what counts is what
		// the path names now.
	}
}

type starter func(*backend, context.Context, *handle) error

func tryOwner(ctx context.Context, path string, o store.OpenOptions, start starter) (*backend, error) {
	path, id, err := locate(path)
	if err != nil {
		return nil, err
	}
	h, err := connect(path, o.PowerSafe)
	if err != nil {
		return nil, err
	}
	b, err := own(ctx, h, id, o, start)
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	go b.keepLease(b.claim.ttl / 3)
	return b, nil
}

// connect opens an owner's connection.
func connect(path string, powerSafe bool) (*handle, error) {
	h, err := openHandle(path, dsnOwner)
	if err != nil || !powerSafe {
		return h, err
	}
	if err := h.run("PRAGMA synchronous = FULL"); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

func own(ctx context.Context, h *handle, id identity, o store.OpenOptions, start starter) (*backend, error) {
	if _, err := h.session(); err != nil {
		return nil, err
	}
	found, err := walSize(h.path)
	if err != nil {
		return nil, err
	}
	held, err := h.acquire(ctx, id, o)
	if err != nil {
		return nil, err
	}
	b := &backend{
		path: h.path, id: id, foundWAL: found, now: o.Now, powerSafe: o.PowerSafe, claim: held, renewed: time.Now(),
		stop: make(chan struct{}), stopped: make(chan struct{}), closed: make(chan struct{}),
	}
	if err := start(b, ctx, h); err != nil {
		return nil, errors.Join(err, h.release(held))
	}
	b.reads.near, b.reads.far = newSlot(h), newSlot(nil)
	b.reads.open = func() (*handle, error) { return openHandle(b.path, dsnReader) }
	return b, nil
}

// load reads what the owner keeps in memory, now that nobody else can change
// it, puts a file that came from elsewhere into WAL mode, and gives one that was
// written without a branch index its index.
func (b *backend) load(ctx context.Context, h *handle) error {
	if err := b.remember(h); err != nil {
		return err
	}
	if err := h.useWAL(); err != nil {
		return err
	}
	missing, err := h.indexMissing()
	if err != nil || !missing {
		return err
	}
	return b.owned(h, func() error { return h.reindex(ctx) })
}

// remember reads what the owner answers and decides from without a statement.
func (b *backend) remember(h *handle) error {
	s, err := h.session()
	if err != nil {
		return err
	}
	b.header.Store(&s.header)
	if b.stats, err = h.stats(); err != nil {
		return err
	}
	b.usage, b.ids = nil, knownIDs{}
	return b.ids.load(h)
}

// owned runs f as one transaction of the owner.
func (b *backend) owned(h *handle, f func() error) error {
	return h.write(func() error {
		ok, err := h.owns(b.claim)
		if err == nil && !ok {
			err = &store.Lost{Path: b.path, Reason: "fenced"}
		}
		if err != nil {
			return err
		}
		return f()
	})
}

// useWAL makes sure of WAL mode; it is a property of the file.
func (h *handle) useWAL() error {
	var mode string
	if _, err := h.row("PRAGMA journal_mode = WAL", nil, &mode); err != nil {
		return err
	}
	if mode != "wal" {
		return corrupt(h.path, "journal mode stays %s", mode)
	}
	return nil
}

// keepLease extends the lease, at that interval, while no commit does (spec §1.7).
func (b *backend) keepLease(interval time.Duration) {
	defer close(b.stopped)
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		select {
		case <-b.stop:
			return
		case <-timer.C:
		}
		h, err := b.near.take(context.Background())
		if err != nil {
			return
		}
		b.tend(h)
		due := interval - time.Since(b.renewed)
		b.near.give(h)
		timer.Reset(max(due, interval/4)) // after a failed attempt, soon
	}
}

// tend renews the lease and notices a file that was taken away (D12). What
// fails for another reason, a full disk, is tried again: the next commit will
// tell.
func (b *backend) tend(h *handle) {
	if b.broken != nil {
		return
	}
	var lost *store.Lost
	err := b.id.present(b.path)
	if !errors.As(err, &lost) {
		renewed := b.renewed
		err = h.write(func() (err error) {
			renewed, err = b.renew(h)
			return err
		})
		if err == nil {
			b.renewed = renewed
		}
	}
	b.note(err)
}

// note ends the writing of an owner that has lost its session.
func (b *backend) note(err error) {
	var lost *store.Lost
	if errors.As(err, &lost) {
		b.broken = lost
	}
}

// Check looks for the file and the claim (D12).
func (b *backend) Check(ctx context.Context) error {
	h, err := b.near.take(ctx)
	if err != nil {
		return err
	}
	defer b.near.give(h)
	if b.broken != nil {
		return b.broken
	}
	err = b.id.present(b.path)
	if err == nil {
		var ok bool
		if ok, err = h.owns(b.claim); err == nil && !ok {
			err = &store.Lost{Path: b.path, Reason: "fenced"}
		}
	}
	b.note(err)
	return err
}

// alone runs f while no other call uses the session: commits, reads and the
// renewal wait. f returns the connection to go on with.
func (b *backend) alone(ctx context.Context, f func(*handle) (*handle, error)) error {
	h, err := b.near.take(ctx)
	if err != nil {
		return err
	}
	defer func() { b.near.give(h) }()
	far, err := b.far.take(ctx)
	if err != nil {
		return err
	}
	// Reads that follow see the file that is there then.
	defer b.far.give(nil)
	if far != nil {
		if err := far.close(); err != nil {
			return err
		}
	}
	h, err = f(h)
	b.note(err)
	return err
}

// Close drains admitted calls, then gives up ownership (spec §1.7).
func (b *backend) Close() error {
	if !b.closing.CompareAndSwap(false, true) {
		<-b.closed
		return b.closeErr
	}
	defer close(b.closed)
	close(b.stop)
	h := b.near.seal()
	<-b.stopped
	var errs []error
	if far := b.far.seal(); far != nil {
		errs = append(errs, far.close())
	}
	b.closeErr = errors.Join(append(errs, b.release(h), h.close())...)
	return b.closeErr
}

// release gives the claim up where that still means something.
func (b *backend) release(h *handle) error {
	err := h.release(b.claim)
	if b.broken != nil {
		return nil // reported before; the end of the process releases it too
	}
	return err
}
