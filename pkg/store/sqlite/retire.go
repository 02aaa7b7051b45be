package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/drover-run/drover/pkg/store"
)

// Retire gives the database up while nobody else can write it: folded, so that it
// is whole without its side files, which go first (D51).
func (b *backend) Retire(ctx context.Context, backup string) error {
	gone, begun := false, false
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
	if err != nil {
		return fmt.Errorf("retire %s: %w", b.path, err)
	}
	return errors.Join(b.Close(), b.driver.fs().SyncDir(filepath.Dir(b.path)))
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
