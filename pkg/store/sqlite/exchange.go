package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/drover-run/drover/pkg/store"
)

// Exchange puts a database with other content in the place of the session's
// (spec §2.9, D51).
func (b *backend) Exchange(ctx context.Context, x store.Exchange) error {
	err := b.alone(ctx, func(h *handle) (*handle, error) {
		if b.broken != nil {
			return h, b.broken
		}
		return b.exchange(ctx, h, x)
	})
	if err != nil {
		return fmt.Errorf("replace %s: %w", b.path, err)
	}
	return nil
}

func (b *backend) exchange(ctx context.Context, h *handle, x store.Exchange) (*handle, error) {
	if err := b.driver.sweep(b.path); err != nil {
		return h, err
	}
	temp, err := b.driver.createTemp(b.path)
	if err != nil {
		return h, err
	}
	h, err = b.replace(h, temp, func() error {
		if err := b.rewrite(ctx, temp, x); err != nil {
			return err
		}
		err := x.Examine(ctx, b.driver, temp)
		// What a reader leaves beside the file belongs to nobody.
		return errors.Join(err, removeSides(b.driver.fs(), temp))
	})
	if err == nil {
		err = b.recall(h)
	}
	return h, errors.Join(err, removeFiles(b.driver.fs(), temp))
}

// rewrite fills temp with the new content. The owner has a transaction open, so
// that the old content is read through a connection of its own.
func (b *backend) rewrite(ctx context.Context, temp string, x store.Exchange) error {
	r, s, err := view(b.path, dsnReader)
	if err != nil {
		return err
	}
	old, err := ownSnapshot(ctx, r, s)
	if err != nil {
		return err
	}
	next, err := x.From(old)
	if err == nil {
		err = fill(ctx, temp, next)
	}
	return errors.Join(err, old.Close())
}

// recall reads what the owner keeps in memory. When it cannot be read, nothing
// may be written any more.
func (b *backend) recall(h *handle) error {
	err := b.remember(h)
	if err != nil {
		b.broken = err
	}
	return err
}
