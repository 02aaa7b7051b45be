package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// Open takes ownership of a session (spec §2.8). While this Repo has it open it
// is ErrOpen; another process's session is *Held. One of an older storage version
// is migrated first (spec §7.3). It fails with *Corrupt, *NewerVersion,
// *OlderVersion, *Legacy, *Moved, or ErrNotFound.
func (r *Repo) Open(ctx context.Context, ref Ref) (*Session, error) {
	if ref.Legacy {
		return nil, fmt.Errorf("open session %s: %w", ref.ID, &Legacy{Path: ref.Path})
	}
	if !r.claim(ref.Path) {
		return nil, fmt.Errorf("open session %s: %w", ref.ID, ErrOpen)
	}
	release := func() { r.release(ref.Path) }
	s, err := r.serve(ctx, ref, r.o.IDs(), release)
	if err != nil {
		release()
		return nil, err
	}
	return s, nil
}

// serve opens a store whose path is reserved; release runs when it closes.
func (r *Repo) serve(ctx context.Context, ref Ref, ids IDSource, release func()) (*Session, error) {
	b, err := ask(r, ref, "open", func(d Driver) (Backend, error) { return d.Open(ctx, ref.Path, r.o.Open) })
	if err != nil {
		return nil, r.elsewhere(ctx, ref, err)
	}
	if err := r.migrate(ctx, ref.Path, b); err != nil {
		return nil, fmt.Errorf("migrate session %s: %w", ref.ID, errors.Join(err, b.Close()))
	}
	return NewSession(b, SessionOptions{IDs: ids, Closing: r.closing(ref), OnClose: release}), nil
}

// missing makes a file that is not there an ErrNotFound as well.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return err
}

// View reads a session without owning or changing it, also while another
// process owns it. What an older storage version stores is seen as its migration
// will leave it (D9).
func (r *Repo) View(ctx context.Context, ref Ref) (Reader, error) {
	return r.view(ctx, ref, Driver.View)
}

// ViewToVerify is View for somebody who runs a full Verify.
func (r *Repo) ViewToVerify(ctx context.Context, ref Ref) (Reader, error) {
	return r.view(ctx, ref, func(d Driver, ctx context.Context, path string) (Reader, error) { return ViewToVerify(ctx, d, path) })
}

// view reads a store and lets an older one be seen as its migration will leave it.
func (r *Repo) view(ctx context.Context, ref Ref, read func(Driver, context.Context, string) (Reader, error)) (Reader, error) {
	stored, err := ask(r, ref, "read", func(d Driver) (Reader, error) { return read(d, ctx, ref.Path) })
	if err != nil {
		return nil, err
	}
	v, err := r.current(ref.Path, stored)
	if err != nil {
		return nil, fmt.Errorf("read session %s: %w", ref.ID, errors.Join(err, stored.Close()))
	}
	return v, nil
}

// stored is View without a migration.
func (r *Repo) stored(ctx context.Context, ref Ref) (Reader, error) {
	return ask(r, ref, "read", func(d Driver) (Reader, error) { return d.View(ctx, ref.Path) })
}

// Header reads a session's header and no more of it.
func (r *Repo) Header(ctx context.Context, ref Ref) (Header, error) {
	return ask(r, ref, "read header of", func(d Driver) (Header, error) { return d.Header(ctx, ref.Path) })
}

// Lease tells who owns a session now, nil when nobody does. It fails with *Moved or
// ErrNotFound for one that is not there.
func (r *Repo) Lease(ctx context.Context, ref Ref) (*Lease, error) {
	l, err := ask(r, ref, "read lease of", func(d Driver) (*Lease, error) { return d.Lease(ctx, ref.Path) })
	return l, r.elsewhere(ctx, ref, err)
}

// ask puts a question to the driver of a session. What is no file is refused
// before a driver would wait for it.
func ask[T any](r *Repo, ref Ref, what string, q func(Driver) (T, error)) (T, error) {
	var answer T
	d, err := r.driver(ref.Backend)
	if err == nil {
		err = regular(ref.Path)
	}
	if err == nil {
		answer, err = q(d)
	}
	if err != nil {
		var none T
		return none, fmt.Errorf("%s session %s: %w", what, ref.ID, missing(err))
	}
	return answer, nil
}

// Delete removes a session and its side files. An open one is ErrOpen or *Held;
// a legacy file is never removed. What it spawned is the business of
// subsession.Cascade.
func (r *Repo) Delete(ctx context.Context, ref Ref) error {
	c, err := r.Claim(ctx, ref)
	if err != nil {
		return err
	}
	return errors.Join(c.Remove(ctx), c.Close())
}
