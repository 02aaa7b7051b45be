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
	if err := b.replace(ctx, x); err != nil {
		return fmt.Errorf("replace %s: %w", b.path, err)
	}
	return nil
}

func (b *backend) replace(ctx context.Context, x store.Exchange) error {
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
	snap, err := x.From(old)
	if err != nil {
		return errors.Join(err, old.Close())
	}
	next := newRewrite(snap)
	err = b.exchange(ctx, next, math.MaxInt64, func(temp string) error {
		return x.Examine(ctx, Driver{FS: b.fs}, temp)
	})
	return errors.Join(err, old.Close())
}
