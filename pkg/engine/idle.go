package engine

import (
	"context"

	"github.com/drover-run/drover/pkg/store"
)

// WaitForIdle returns once every earlier admitted job of the lane has run, no
// operation is open and no idle callback holds the lane (spec §5.1).
func (l *Lane) WaitForIdle(ctx context.Context) error {
	for {
		ready, err := l.idleNow(ctx, false)
		if err != nil || ready == nil {
			return err
		}
		select {
		case <-ready:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// WaitForDrive returns once no pass of this process drives the lane: it is idle,
// or its open operation waits for somebody to drive it. It answers with what the
// lane was at that moment.
func (l *Lane) WaitForDrive(ctx context.Context) (ExecutionInfo, error) {
	for {
		info, ready, err := l.driveEnd(ctx)
		if err != nil || ready == nil {
			return info, err
		}
		select {
		case <-ready:
		case <-ctx.Done():
			return ExecutionInfo{}, context.Cause(ctx)
		}
	}
}

// driveEnd looks on the lane line; a channel closes when it is worth looking
// again.
func (l *Lane) driveEnd(ctx context.Context) (ExecutionInfo, <-chan struct{}, error) {
	type look struct {
		info  ExecutionInfo
		ready chan struct{}
	}
	found, err := onLine(ctx, l, func(m *store.Mutator) (look, error) {
		info, err := ReadExecution(ctx, m, l.name, l.owner())
		if err != nil {
			return look{}, err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.active == nil && !l.callback {
			return look{info: info}, nil
		}
		ready := make(chan struct{})
		l.idle = append(l.idle, ready)
		return look{ready: ready}, nil
	})
	return found.info, found.ready, err
}

// RunWhenIdle waits as WaitForIdle does, then runs callback while it holds the
// lane: no operation is accepted meanwhile. callback must not change the lane.
func (l *Lane) RunWhenIdle(ctx context.Context, callback func(context.Context) error) error {
	for {
		ready, err := l.idleNow(ctx, true)
		if err != nil {
			return err
		}
		if ready == nil {
			break
		}
		select {
		case <-ready:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	l.h.passes.Add(1)
	defer l.h.passes.Done()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.callback = false
		l.wake()
	}()
	return callback(ctx)
}

// idleNow looks on the lane line; nil means idle, a channel closes when it is
// worth looking again. take also takes the lane for a callback.
func (l *Lane) idleNow(ctx context.Context, take bool) (<-chan struct{}, error) {
	return onLine(ctx, l, func(m *store.Mutator) (<-chan struct{}, error) {
		t, err := l.load(ctx, m)
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if t.State == nil && l.active == nil && !l.callback {
			l.callback = take
			return nil, nil
		}
		ready := make(chan struct{})
		l.idle = append(l.idle, ready)
		return ready, nil
	})
}
