package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/drover-run/drover/pkg/store"
)

// inOrder does n things on every core and hands each on when all before it are
// done, so that what is printed has one order. An error of do ends it; that nobody
// reads what is printed does not, since the work is for more than the answer.
func inOrder(n int, do func(i int) error, done func(i int)) error {
	var g errgroup.Group
	var next atomic.Int64
	stop := func() { next.Store(int64(n)) }
	finished := make([]chan error, n)
	for i := range finished {
		finished[i] = make(chan error, 1)
	}
	for range min(n, runtime.GOMAXPROCS(0)) {
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return nil
				}
				finished[i] <- guarded(func() error { return do(i) })
			}
		})
	}
	for i := range n {
		if err := <-finished[i]; err != nil {
			stop()
			_ = g.Wait() // workers return nothing: what went wrong is err
			return err
		}
		done(i)
	}
	return g.Wait()
}

// sweepItems works on items in order until a signal comes, and shows each that is
// done. It returns those; what was not begun by then, or was cut short, is left out
// and counted. The error is a defect.
func sweepItems[T any](ctx context.Context, items []T, do func(*T) error, show func(*T)) (done []T, left int, err error) {
	cut := make([]bool, len(items))
	err = inOrder(len(items), func(i int) error {
		cut[i] = ctx.Err() != nil || cutShort(bySignal(ctx, do(&items[i])))
		return nil
	}, func(i int) {
		if !cut[i] {
			show(&items[i])
		}
	})
	for i := range items {
		if !cut[i] {
			done = append(done, items[i])
		}
	}
	return done, len(items) - len(done), err
}

// sweepFailure is what a command over several sessions ends with: what they ended
// with, or the signal that came before all were done.
func sweepFailure(ctx context.Context, errs []error, left, all int) error {
	if left == 0 {
		return itemsFailure("sessions", errs)
	}
	return leftUndone(ctx, left, all)
}

// cutItems counts the items that a signal cut short in the middle.
func cutItems(errs []error) int {
	n := 0
	for _, err := range errs {
		if cutShort(err) {
			n++
		}
	}
	return n
}

// leftUndone is the failure of a command that a signal kept from finishing.
func leftUndone(ctx context.Context, left, all int) error {
	f := *explain(bySignal(ctx, context.Cause(ctx)))
	f.message += fmt.Sprintf(": %d of %d session(s) are not done", left, all)
	return &f
}

// notDone counts what a signal has kept a command from doing; without one it is no
// member.
func (o *object) notDone(n int) {
	if n > 0 {
		o.int("notDone", int64(n))
	}
}

// target is one session that a command over several works on.
type target struct {
	session string // the id, or the argument that matches none
	ref     store.Ref
	err     error // why it cannot be worked on
}

// convert makes a target one that can be written to, as target does for one session.
func (t *target) convert(ctx context.Context, b *base) error {
	ref, err := b.converted(ctx, t.ref)
	if err == nil {
		t.session, t.ref = ref.ID, ref
	}
	return err
}

// targets are the sessions that the arguments mean, or all of the repository. A
// session that is named twice, by its id and its path as well, is taken once. An
// argument that names no session is a target that failed.
func (b *base) targets(ctx context.Context, args []string, all bool) ([]target, error) {
	var found []target
	if all {
		listed, err := b.repo.List(ctx)
		if err != nil {
			return nil, err
		}
		for _, l := range listed {
			found = append(found, target{session: l.Ref.ID, ref: l.Ref, err: l.Err})
		}
		return found, nil
	}
	named := map[string]bool{}
	for _, arg := range args {
		ref, err := b.resolve(ctx, arg)
		if err != nil {
			found = append(found, target{session: arg, err: err})
			continue
		}
		if file := realPath(ref.Path); !named[file] {
			named[file] = true
			found = append(found, target{session: ref.ID, ref: ref})
		}
	}
	return found, ctx.Err()
}

// realPath is a path that is the same for every way to name a file.
func realPath(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// severalArgs are the sessions of a command that takes SESSION... or --all.
func severalArgs(f *factory, args []string, all bool) ([]string, error) {
	switch {
	case all && len(args) > 0:
		return nil, usagef("--all and SESSION exclude each other")
	case all || len(args) > 0:
		return args, nil
	}
	session, _, err := sessionArg(f, nil)
	return []string{session}, err
}
