package sqlite

import (
	"context"

	"github.com/drover-run/drover/pkg/store"
)

// slot lends one connection to one caller at a time, in the order of arrival.
// Callers wait on channels, so that tests can see them wait.
type slot struct {
	free   chan *handle  // holds the connection while nobody uses it
	sealed chan struct{} // closed: nobody else is admitted
	closed chan struct{} // closed: the connection is gone
}

// newSlot serves a connection; nil stands for one that its user opens.
func newSlot(h *handle) *slot {
	s := &slot{free: make(chan *handle, 1), sealed: make(chan struct{}), closed: make(chan struct{})}
	s.free <- h
	return s
}

// take waits for the connection; give returns it.
func (s *slot) take(ctx context.Context) (*handle, error) {
	select {
	case <-s.sealed:
		return nil, store.ErrClosed
	default:
	}
	select {
	case h := <-s.free:
		return h, nil
	case <-s.closed:
		return nil, store.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *slot) give(h *handle) { s.free <- h }

// seal refuses later callers and takes the connection for good once those that
// were admitted have used it.
func (s *slot) seal() *handle {
	close(s.sealed)
	h := <-s.free
	close(s.closed)
	return h
}
