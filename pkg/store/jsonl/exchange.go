package jsonl

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/drover-run/drover/pkg/store"
)

// Exchange puts a file with other content in the place of the session's (spec
// §2.9). Views, snapshots and queries that began before go on in the old file.
func (b *backend) Exchange(ctx context.Context, x store.Exchange) error {
	if err := b.enter(ctx); err != nil {
		return err
	}
	defer b.leave()
	err := b.replace(ctx, x.From, func(temp string) error { return x.Examine(ctx, Driver{FS: b.fs}, temp) })
	if err != nil {
		return fmt.Errorf("replace %s: %w", b.path, err)
	}
	return nil
}

// Migrate writes the content as the steps leave it as a new file: the old one gets
// no line that the new version would have to understand (D52).
func (b *backend) Migrate(ctx context.Context, steps []store.Migration) error {
	if err := b.enter(ctx); err != nil {
		return err
	}
	defer b.leave()
	next := func(old *store.Snapshot) (*store.Snapshot, error) { return store.Migrated(old, steps), nil }
	if err := b.replace(ctx, next, func(string) error { return nil }); err != nil {
		return fmt.Errorf("migrate %s: %w", b.path, err)
	}
	return nil
}

// replace writes what next makes of the content, and goes on in it once it has
// stood the judgement.
func (b *backend) replace(ctx context.Context, next func(*store.Snapshot) (*store.Snapshot, error), judge func(temp string) error) error {
	if b.broken != nil {
		return fmt.Errorf("refused after a failed commit: %w", b.broken)
	}
	if err := sweep(b.fs, b.path); err != nil {
		return err
	}
	old, err := b.State.Snapshot(ctx)
	if err != nil {
		return err
	}
	snap, err := next(old)
	if err == nil {
		err = b.exchange(ctx, newRewrite(snap), math.MaxInt64, judge)
	}
	return errors.Join(err, old.Close())
}
