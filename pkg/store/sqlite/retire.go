package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/drover-run/drover/pkg/store"
)

// Retire gives the database up while nobody else can write it: folded, so that it
// is whole without its side files, which go first (D51). It is folded before there is
// a successor: a reader that is in the way of that leaves the session as it was, and
// one that comes later is in nobody's way.
func (b *backend) Retire(ctx context.Context, backup string, succeed func(*store.Snapshot) error) error {
	gone, begun := false, false
	var unbuilt error // why there is no successor
	err := b.alone(ctx, func(h *handle) (*handle, error) {
		if b.broken != nil {
			return h, b.broken
		}
		if err := b.driver.sweep(b.path); err != nil {
			return h, err
		}
		if err := h.foldWAL(); err != nil {
			return h, err
		}
		err := b.owned(h, func() (err error) {
			if err := noWAL(b.path); err != nil {
				return err
			}
			if unbuilt = b.succeed(ctx, succeed); unbuilt != nil {
				return unbuilt
			}
			begun, err = b.giveUp(backup)
			gone = begun && err == nil
			return err
		})
		switch {
		case gone:
			// The claim goes with the file: nothing is written to that any more.
			b.claim, b.broken = claim{}, &store.Lost{Path: b.path, Reason: "retired"}
		case begun:
			b.broken = err
		}
		return h, err
	})
	if err != nil && unbuilt == nil {
		err = fmt.Errorf("retire %s: %w", b.path, err)
	}
	if err != nil {
		return err
	}
	return errors.Join(b.Close(), b.driver.fs().SyncDir(filepath.Dir(b.path)))
}

// succeed reads the session through a connection of its own, as the owner has a
// transaction open.
func (b *backend) succeed(ctx context.Context, succeed func(*store.Snapshot) error) error {
	h, s, err := view(b.path, dsnReader)
	if err != nil {
		return err
	}
	snap, err := ownSnapshot(ctx, h, s)
	if err != nil {
		return err
	}
	return errors.Join(succeed(snap), snap.Close())
}

// giveUp tells whether the connection has lost its side files.
func (b *backend) giveUp(backup string) (begun bool, err error) {
	if err := b.id.present(b.path); err != nil {
		return false, err
	}
	if err := noWAL(b.path); err != nil {
		return false, err
	}
	fsys := b.driver.fs()
	if err := removeSides(fsys, b.path); err != nil {
		return true, err
	}
	if err := fsys.SyncDir(filepath.Dir(b.path)); err != nil {
		return true, err
	}
	if backup == "" {
		return true, fsys.Remove(b.path)
	}
	return true, fsys.RenameNew(b.path, backup)
}
