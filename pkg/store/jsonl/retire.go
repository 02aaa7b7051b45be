package jsonl

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/drover-run/drover/pkg/store"
)

// Retire gives the file up under its lock, which goes last (D16).
func (b *backend) Retire(ctx context.Context, backup string, succeed func(*store.Snapshot) error) error {
	if err := b.enter(ctx); err != nil {
		return err
	}
	defer b.leave()
	err := b.check()
	if err == nil {
		err = b.succeed(ctx, succeed)
	}
	if err != nil {
		return err
	}
	if err := b.retire(backup); err != nil {
		return fmt.Errorf("retire %s: %w", b.path, err)
	}
	b.closed = true
	b.State.Close()
	b.err = errors.Join(b.file.Close(), b.lock.Remove())
	return errors.Join(b.fs.SyncDir(filepath.Dir(b.path)), b.err)
}

func (b *backend) succeed(ctx context.Context, succeed func(*store.Snapshot) error) error {
	snap, err := b.Snapshot(ctx)
	if err != nil {
		return err
	}
	return errors.Join(succeed(snap), snap.Close())
}

func (b *backend) retire(backup string) error {
	if err := b.check(); err != nil {
		return err
	}
	if err := sweep(b.fs, b.path); err != nil {
		return err
	}
	if backup == "" {
		return b.fs.Remove(b.path)
	}
	return b.fs.RenameNew(b.path, backup)
}
