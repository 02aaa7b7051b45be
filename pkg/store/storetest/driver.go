package storetest

import (
	"context"

	"github.com/drover-run/drover/pkg/store"
)

// Wrap returns a driver like d whose opened backends are decorated.
func Wrap(d store.Driver, decorate func(store.Backend) store.Backend) store.Driver {
	return &wrapped{d, decorate}
}

type wrapped struct {
	store.Driver
	decorate func(store.Backend) store.Backend
}

func (w *wrapped) Open(ctx context.Context, path string, o store.OpenOptions) (store.Backend, error) {
	b, err := w.Driver.Open(ctx, path, o)
	if err != nil {
		return nil, err
	}
	return w.decorate(b), nil
}
