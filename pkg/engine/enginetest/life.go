package enginetest

import (
	"context"
	"fmt"
	"sync"

	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/storetest"
)

// Death says when a process dies: right after its n-th commit is durable, right
// before or after its n-th effect, or before its n-th breakpoint, where it is
// closed. Counted from 1; the zero Death never comes.
type Death struct {
	Commit     int
	Effect     int
	After      bool // its effect
	Breakpoint int
}

func (d Death) String() string {
	switch {
	case d.Commit > 0:
		return fmt.Sprintf("after commit %d", d.Commit)
	case d.Effect > 0 && d.After:
		return fmt.Sprintf("after effect %d", d.Effect)
	case d.Effect > 0:
		return fmt.Sprintf("before effect %d", d.Effect)
	case d.Breakpoint > 0:
		return fmt.Sprintf("closed before breakpoint %d", d.Breakpoint)
	}
	return "never"
}

// life is the time of one process. What a dead one does has no effect.
type life struct {
	mu      sync.Mutex
	death   Death
	commits int
	effects []string
	dead    bool
}

// effect begins something that touches the world; false when the process is dead
// or dies right before it. done is called once, as soon as it is over.
func (l *life) effect(name string) (done func(), alive bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return func() {}, false
	}
	l.effects = append(l.effects, name)
	mine := len(l.effects) == l.death.Effect
	if mine && !l.death.After {
		l.dead = true
		return func() {}, false
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.dead = l.dead || mine
	}, true
}

func (l *life) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// Effect does something that touches the world, as a hook or a tool would, unless
// the process is dead or dies of it; false when it was not done.
func (w *World) Effect(name string, do func()) bool {
	done, alive := w.life.effect(name)
	if alive {
		do()
		done()
	}
	return alive
}

// mortal is the storage of a process that dies.
type mortal struct {
	store.Backend
	life *life
}

func (b mortal) Commit(ctx context.Context, tx store.Tx) (store.CommitResult, error) {
	if b.life.over() {
		return store.CommitResult{}, storetest.ErrInjected
	}
	res, err := b.Backend.Commit(ctx, tx)
	b.life.mu.Lock()
	defer b.life.mu.Unlock()
	b.life.commits++
	if b.life.commits == b.life.death.Commit {
		b.life.dead = true
		return store.CommitResult{}, storetest.ErrInjected
	}
	return res, err
}
