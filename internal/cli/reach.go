package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drover-run/drover/internal/owner"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/store"
)

const (
	// ownerPatience is how long to wait for an owner that is closing, or that has
	// not begun to listen yet (D25).
	ownerPatience = 5 * time.Second
	// listenPatience is how long a living owner may take from its lease to its
	// socket.
	listenPatience = time.Second
	// ownerPause is between two looks at an owner that cannot be asked.
	ownerPause = 20 * time.Millisecond
)

// reach carries out a request on a session: in the process that owns it, when
// one does and answers, otherwise on the file (D25). A request that was not
// answered is made again, so it must have the same ids each time. local gives up
// the session.
func (b *base) reach(ctx context.Context, ref store.Ref, remote func(*owner.Client) error, local func(*store.Session) error) error {
	end := time.Now().Add(ownerPatience)
	for {
		err := b.remotely(ctx, ref, remote)
		if followed(&ref, err) {
			continue
		}
		if err == nil || !errors.Is(err, owner.ErrGone) && !errors.Is(err, owner.ErrClosing) {
			return err
		}
		s, err := b.open(ctx, &ref)
		if err == nil {
			return local(s)
		}
		held, ok := errors.AsType[*store.Held](err)
		if !ok || held.Lease.Socket == "" || time.Now().After(end) {
			return err
		}
	}
}

// remotely makes a request of the session's owner; ErrGone when there is none to
// ask.
func (b *base) remotely(ctx context.Context, ref store.Ref, use func(*owner.Client) error) error {
	end := time.Now().Add(listenPatience)
	for {
		lease, err := b.lease(ctx, ref)
		if err != nil {
			return err
		}
		if !ownerLive(lease) || lease.Socket == "" {
			return owner.ErrGone
		}
		c, err := owner.Dial(ctx, *lease, owner.DialOptions{SessionID: ref.ID, Path: ref.Path})
		switch {
		case err == nil:
			return firstOf(use(c), c.Close())
		case !errors.Is(err, owner.ErrGone) || time.Now().After(end):
			return err
		}
		if err := pause(ctx, ownerPause); err != nil {
			return err
		}
	}
}

// reachLane is reach for a request to a lane; local works on the lane itself.
func (b *base) reachLane(ctx context.Context, ref store.Ref, lane string, remote func(*owner.Client) error, local func(*engine.Lane, *store.Session) error) error {
	err := b.reach(ctx, ref, remote, func(s *store.Session) error {
		return b.withLane(ctx, s, lane, func(l *engine.Lane) error { return local(l, s) })
	})
	return busyHint(err, b.namingLane(ref, lane))
}

// withLane works on one lane of an owned session, without driving it, and gives
// the session up.
func (b *base) withLane(ctx context.Context, s *store.Session, name string, use func(*engine.Lane) error) error {
	return b.withHarness(ctx, s, func(h *engine.Harness) error {
		lane, err := h.Lane(name)
		if err != nil {
			return err
		}
		return use(lane)
	})
}

// newID mints an id for a request that may have to be repeated.
func (b *base) newID() string { return store.NewIDs(b.now, nil).NewID() }

// explainOwner knows what can go wrong between two processes; nil for any other
// error.
func explainOwner(err error) *failure {
	if e, ok := errors.AsType[*owner.FolderError](err); ok {
		return &failure{code: exitIO, tag: "io", details: func(o *object) { o.str("path", e.Path) }}
	}
	if e, ok := errors.AsType[*owner.Occupied](err); ok {
		f := explainHeld(&e.Held)
		f.message = fmt.Sprintf("%s, which is busy with %s", f.message, e.Command)
		return f
	}
	if e, ok := errors.AsType[*owner.RemoteError](err); ok {
		return explainRemote(e)
	}
	if errors.Is(err, owner.ErrClosing) || errors.Is(err, owner.ErrGone) {
		f := &failure{code: exitLocked, tag: "lease_held"}
		return f.withHint("wait for it with --lease-wait 30s")
	}
	return nil
}

func explainRemote(e *owner.RemoteError) *failure {
	f := &failure{code: exitInternal, tag: e.Code}
	if e.Details != nil {
		f.details = func(o *object) { o.members(e.Details) }
	}
	switch e.Code {
	case "usage":
		f.code = exitUsage
	case "unsupported":
		f.code = exitRefused
	case "io", "slow_reader":
		f.code, f.tag = exitIO, "io"
	default:
		f.tag = "fault"
	}
	return f
}
