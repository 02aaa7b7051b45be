package sqlite

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/store"
)

const (
	defaultTTL = 30 * time.Second
	// maxTTL bounds every lease, and so how long a row that claims a longer
	// life can hold a session.
	maxTTL = 5 * time.Minute
	// patience is how long a held session is looked at before it is refused:
	// its owner may be about to close it (D22).
	patience = 250 * time.Millisecond
	pollWait = 25 * time.Millisecond
)

// claim is the content of the lease row. A row that holds anything else than a
// lease reads as an owner that nothing is known of.
type claim struct {
	owner    string // "" is nobody
	fence    int64
	expires  int64 // Unix ms by the owner's clock; shown, never compared with ours
	ttl      time.Duration
	process  fsx.Process
	acquired int64 // Unix ms
	command  string
	socket   string
}

const sqlLease = `SELECT ifnull(CAST(owner_id AS TEXT), ''), CAST(fence AS INTEGER), ifnull(CAST(expires_at_ms AS INTEGER), 0),
	ifnull(CAST(ttl_ms AS INTEGER), 0), ifnull(host, ''), ifnull(boot_id, ''), ifnull(pid_ns, ''),
	ifnull(CAST(pid AS INTEGER), 0), ifnull(CAST(pid_start AS INTEGER), 0), ifnull(CAST(acquired_at AS INTEGER), 0),
	ifnull(command, ''), ifnull(socket, '') FROM writer_lease`

func (h *handle) claim() (claim, error) {
	var c claim
	var ttl int64
	ok, err := h.row(sqlLease, nil, &c.owner, &c.fence, &c.expires, &ttl,
		&c.process.Host, &c.process.BootID, &c.process.PIDNS, &c.process.PID, &c.process.Start,
		&c.acquired, &c.command, &c.socket)
	if err == nil && !ok {
		err = corrupt(h.path, "lease row is missing")
	}
	c.ttl = min(time.Duration(ttl)*time.Millisecond, maxTTL)
	return c, err
}

// lease describes the claim to others. Live is judged by the process where it
// can be, by the expiry where it cannot (D22).
func (c claim) lease(now int64) store.Lease {
	self := fsx.Self()
	near := c.process.BootID == self.BootID && c.process.PIDNS == self.PIDNS && c.process.PID > 0
	return store.Lease{
		OwnerID: c.owner, Fence: c.fence, ExpiresAt: &c.expires,
		Host: c.process.Host, PID: c.process.PID, Since: c.acquired,
		Live:    !c.process.Gone() && (near || now < c.expires),
		Command: c.command, Socket: c.socket,
	}
}

// The owner is compared as well as the fence: both must be the row that was
// judged.
const sqlAcquire = `UPDATE writer_lease SET owner_id = ?1, fence = ?2, expires_at_ms = ?3, ttl_ms = ?4,
	host = ?5, boot_id = ?6, pid_ns = ?7, pid = ?8, pid_start = ?9, acquired_at = ?10, command = ?11, socket = ?12
	WHERE ifnull(CAST(owner_id AS TEXT), '') = ?13 AND CAST(fence AS INTEGER) = ?14 AND ifnull(CAST(expires_at_ms AS INTEGER), 0) = ?15`

// lease is the claim as others see it now, nil when nobody has made one.
func (h *handle) lease() (*store.Lease, error) {
	c, err := h.claim()
	if err != nil || c.owner == "" {
		return nil, err
	}
	l := c.lease(store.SystemNow())
	return &l, nil
}

// succeed takes the session over from the claim that was judged; false means
// that another contender was faster.
func (h *handle) succeed(old, next claim) (bool, error) {
	var n int64
	err := h.write(func() (err error) {
		p := next.process
		n, err = h.exec(sqlAcquire, next.owner, next.fence, next.expires, next.ttl.Milliseconds(),
			p.Host, p.BootID, p.PIDNS, p.PID, p.Start, next.acquired, next.command, next.socket,
			old.owner, old.fence, old.expires)
		return err
	})
	return n == 1, err
}

// acquire makes this process the owner of the session: at once when nobody is
// or the owner is gone, otherwise when its claim has stood unchanged for a full
// ttl by our own monotonic clock, if o.Wait allows that (D22). It fails with
// *store.Held.
func (h *handle) acquire(ctx context.Context, id identity, o store.OpenOptions) (claim, error) {
	ttl := min(o.LeaseTTL, maxTTL)
	if ttl <= 0 {
		ttl = defaultTTL
	}
	began := time.Now()
	wait := max(o.Wait, patience)
	seen, since := claim{}, began
	for {
		if err := id.present(h.path); err != nil {
			return claim{}, err
		}
		cur, err := h.claim()
		if err != nil {
			return claim{}, err
		}
		if cur.owner != seen.owner || cur.fence != seen.fence || cur.expires != seen.expires {
			seen, since = cur, time.Now()
		}
		stale := time.Since(since) >= max(ttl, cur.ttl)
		if cur.owner == "" || stale || cur.process.Gone() {
			next := newClaim(cur, ttl, o, h.path)
			won, err := h.succeed(cur, next)
			switch {
			case err == nil && won:
				// The path may have been given to another file meanwhile.
				return next, id.present(h.path)
			case err == nil:
				continue
			case !errors.Is(err, syscall.EBUSY):
				return claim{}, err
			}
			// The owner keeps the write lock while it replaces the file.
		}
		left := wait - time.Since(began)
		if left <= 0 {
			return claim{}, &store.Held{Path: h.path, Lease: cur.lease(o.Now())}
		}
		if err := pause(ctx, min(left, pollWait)); err != nil {
			return claim{}, err
		}
	}
}

func newClaim(old claim, ttl time.Duration, o store.OpenOptions, path string) claim {
	now := o.Now()
	info := o.Describe(path, old.fence+1)
	return claim{
		owner: uuid.NewString(), fence: old.fence + 1, expires: now + ttl.Milliseconds(), ttl: ttl,
		process: fsx.Self(), acquired: now, command: info.Command, socket: info.Socket,
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

const (
	// Each renewal shows, even under a clock that stands still or was set back.
	sqlRenew = `UPDATE writer_lease SET expires_at_ms = ?1 + (expires_at_ms = ?1) WHERE owner_id = ?2 AND fence = ?3`
	// The fence stays, so that it rises with every owner.
	sqlRelease = `UPDATE writer_lease SET owner_id = NULL, expires_at_ms = NULL WHERE owner_id = ?1 AND fence = ?2`
	sqlOwns    = `SELECT 1 FROM writer_lease WHERE owner_id = ?1 AND fence = ?2`
)

// release gives the session up, unless it has a new owner.
func (h *handle) release(c claim) error {
	return h.write(func() error {
		_, err := h.exec(sqlRelease, c.owner, c.fence)
		return err
	})
}

// owns reports whether the claim still stands.
func (h *handle) owns(c claim) (bool, error) {
	var one int
	return h.row(sqlOwns, []any{c.owner, c.fence}, &one)
}
