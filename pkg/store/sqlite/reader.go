package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"syscall"

	lib "modernc.org/sqlite/lib"

	"github.com/drover-run/drover/pkg/store"
)

// reader is a read-only view: one coherent moment, held by a read transaction
// until it is closed.
type reader struct {
	reads
	path     string
	row      sessionRow
	closing  atomic.Bool
	closed   chan struct{}
	closeErr error
}

// openReader views the session at path without owning or changing it (D9).
func openReader(path string) (*reader, error) {
	h, s, err := openView(path)
	if err != nil {
		return nil, err
	}
	r := &reader{path: path, row: s, closed: make(chan struct{})}
	r.header.Store(&s.header)
	r.near = newSlot(h)
	r.far = r.near
	return r, nil
}

// openView connects a reader and fixes the moment that it sees.
func openView(path string) (*handle, sessionRow, error) {
	path, _, err := locate(path)
	if err != nil {
		return nil, sessionRow{}, err
	}
	h, s, err := view(path, dsnReader)
	if err == nil || !needsFolder(err) {
		return h, s, err
	}
	// WAL mode needs files beside the database, which cannot be made here.
	holds, walErr := walHolds(path)
	switch {
	case walErr != nil:
		return nil, s, errors.Join(err, walErr)
	case holds && noRoom(err):
		return nil, s, fmt.Errorf("%s: the disk is full and %s holds commits: make room for the files that reading them needs (%w): %w",
			path, walPath(path), syscall.ENOSPC, err)
	case holds:
		return nil, s, fmt.Errorf("%s: the folder is not writable and %s holds commits: copy all files of the session to a writable folder (%w): %w",
			path, walPath(path), fs.ErrPermission, err)
	}
	return view(path, dsnImmutable)
}

func view(path, dsn string) (*handle, sessionRow, error) {
	h, err := openHandle(path, dsn)
	if err != nil {
		return nil, sessionRow{}, err
	}
	s, err := h.begin()
	if err != nil {
		return nil, s, errors.Join(err, h.close())
	}
	return h, s, nil
}

// begin opens a read transaction; its first statement fixes what it sees.
func (h *handle) begin() (sessionRow, error) {
	if _, err := h.exec("BEGIN"); err != nil {
		return sessionRow{}, err
	}
	return h.session()
}

// needsFolder reports an error of a reader that could not make the files that
// WAL mode needs.
func needsFolder(err error) bool {
	switch resultCode(err) & 0xff {
	case lib.SQLITE_CANTOPEN, lib.SQLITE_READONLY:
		return true
	}
	return noRoom(err)
}

// noRoom reports that there was no room for them.
func noRoom(err error) bool { return resultCode(err) == lib.SQLITE_IOERR_SHMSIZE }

// Lease reads the lease row of the view's moment, see Driver.Lease.
func (r *reader) Lease(ctx context.Context) (*store.Lease, error) {
	var l *store.Lease
	err := r.lookup(ctx, func(h *handle) (err error) {
		l, err = h.lease()
		return err
	})
	return l, err
}

// Snapshot reads the moment of the view.
func (r *reader) Snapshot(ctx context.Context) (*store.Snapshot, error) {
	return snapshot(ctx, r.near, r.row, func() error { return nil })
}

// Snapshot reads the present moment through a connection of its own, so that
// commits go on meanwhile.
func (b *backend) Snapshot(ctx context.Context) (*store.Snapshot, error) {
	h, s, err := b.present(ctx)
	if err != nil {
		return nil, err
	}
	return ownSnapshot(ctx, h, s)
}

// present connects a reader to an owned session, unless it is closed.
func (b *backend) present(ctx context.Context) (*handle, sessionRow, error) {
	h, err := b.near.take(ctx)
	if err != nil {
		return nil, sessionRow{}, err
	}
	defer b.near.give(h)
	return view(b.path, dsnReader)
}

// ownSnapshot reads the moment that a connection of its own sees, and closes
// that with the snapshot.
func ownSnapshot(ctx context.Context, h *handle, s sessionRow) (*store.Snapshot, error) {
	slot := newSlot(h)
	var closing atomic.Bool
	done := func() error {
		if !closing.CompareAndSwap(false, true) {
			return nil
		}
		return slot.seal().close()
	}
	snap, err := snapshot(ctx, slot, s, done)
	if err != nil {
		return nil, errors.Join(err, done())
	}
	return snap, nil
}

func snapshot(ctx context.Context, slot *slot, s sessionRow, done func() error) (*store.Snapshot, error) {
	m := moment{ctx: ctx, slot: slot}
	spots, err := m.spots()
	if err != nil {
		return nil, err
	}
	outline := moment{ctx: ctx, slot: slot, outline: true}
	return &store.Snapshot{
		Header: s.header, NextSeq: s.nextSeq, Records: m.records(spots), Outline: outline.records(spots), Close: done,
	}, nil
}

// Close ends the view.
func (r *reader) Close() error {
	if !r.closing.CompareAndSwap(false, true) {
		<-r.closed
		return r.closeErr
	}
	defer close(r.closed)
	r.closeErr = r.near.seal().close()
	return r.closeErr
}
