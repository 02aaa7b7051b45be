package storetest

import (
	"context"
	"errors"
	"sync"

	"github.com/drover-run/drover/pkg/store"
)

// ErrInjected is the failure of a Faulty backend that names no other.
var ErrInjected = errors.New("injected failure")

// Plan says when a Faulty backend breaks and how.
type Plan struct {
	// Commit is the commit that breaks, counted from 1; 0 is none.
	Commit int
	// After breaks once the commit is durable, not before it reaches the store.
	After bool
	// Err is what the broken commit and every later one return; nil means
	// ErrInjected.
	Err error
	// Crash, when set, is called at the break and should not return, as a process
	// that kills itself does not (D64).
	Crash func()
}

// Faulty is a Backend that breaks at one commit. Commits are counted as they
// start, refused ones included.
type Faulty struct {
	store.Backend

	mu     sync.Mutex
	plan   Plan
	n      int
	broken bool
}

// NewFaulty breaks b as planned.
func NewFaulty(b store.Backend, plan Plan) *Faulty {
	if plan.Err == nil {
		plan.Err = ErrInjected
	}
	return &Faulty{Backend: b, plan: plan}
}

// Commits returns how many commits have started.
func (f *Faulty) Commits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

// Commit fails at the planned commit and ever after: a backend whose commit
// failed accepts no more.
func (f *Faulty) Commit(ctx context.Context, tx store.Tx) (store.CommitResult, error) {
	f.mu.Lock()
	f.n++
	broken, now := f.broken, f.n == f.plan.Commit
	f.broken = f.broken || now
	f.mu.Unlock()
	switch {
	case broken:
		return store.CommitResult{}, f.plan.Err
	case !now:
		return f.Backend.Commit(ctx, tx)
	case f.plan.After:
		if res, err := f.Backend.Commit(ctx, tx); err != nil {
			return res, err
		}
	}
	if f.plan.Crash != nil {
		f.plan.Crash()
	}
	return store.CommitResult{}, f.plan.Err
}
