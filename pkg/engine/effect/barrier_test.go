package effect_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine/effect"
)

var (
	request    = effect.Action{Kind: "assistant.request", Description: "ask", Details: json.RawMessage(`{"attempt":1}`)}
	settlement = effect.Action{Kind: "assistant.settlement", Description: "settle"}
)

// open admits every hit.
func open() error { return nil }

// park hits a barrier in a goroutine of its own and waits until it is parked.
func park(ctx context.Context, b *effect.Barrier, a effect.Action) <-chan error {
	done := make(chan error, 1)
	go func() { done <- b.Hit(ctx, a, open) }()
	synctest.Wait()
	return done
}

func ended(done <-chan error) (error, bool) {
	synctest.Wait()
	select {
	case err := <-done:
		return err, true
	default:
		return nil, false
	}
}

func wantAction(t *testing.T, got effect.Action, ok bool, want effect.Action) {
	t.Helper()
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("%t (-want +got):\n%s", ok, diff)
	}
}

func TestBarrierAutomatic(t *testing.T) {
	var b *effect.Barrier
	if err := b.Hit(t.Context(), request, open); err != nil {
		t.Error(err)
	}
	b.Interrupt(errClosed)
	b.Close(errClosed)
}

// A parked action is seen, and released by Execute and nothing else (§4.2).
func TestBarrierExecute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := effect.NewBarrier()
		if a, ok := b.Execute(); ok {
			t.Errorf("executed %v with nothing parked", a)
		}
		done := park(t.Context(), b, request)
		for range 2 {
			a, ok := b.Peek(t.Context(), nil)
			wantAction(t, a, ok, request)
		}
		if err, over := ended(done); over {
			t.Fatalf("went on by itself: %v", err)
		}
		a, ok := b.Execute()
		wantAction(t, a, ok, request)
		if err, over := ended(done); err != nil || !over {
			t.Errorf("after its execution: %v, %t", err, over)
		}
		if a, ok := b.Execute(); ok {
			t.Errorf("executed %v a second time", a)
		}
		next := park(t.Context(), b, settlement)
		a, ok = b.Peek(t.Context(), nil)
		wantAction(t, a, ok, settlement)
		b.Execute()
		if err, over := ended(next); err != nil || !over {
			t.Errorf("after its execution: %v, %t", err, over)
		}
	})
}

func TestBarrierPeek(t *testing.T) {
	type peeked struct {
		action effect.Action
		ok     bool
	}
	peek := func(ctx context.Context, b *effect.Barrier, over <-chan struct{}) <-chan peeked {
		out := make(chan peeked, 1)
		go func() {
			a, ok := b.Peek(ctx, over)
			out <- peeked{a, ok}
		}()
		synctest.Wait()
		return out
	}
	t.Run("waits for the next arrival", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := effect.NewBarrier()
			out := peek(t.Context(), b, nil)
			done := park(t.Context(), b, request)
			got := <-out
			wantAction(t, got.action, got.ok, request)
			b.Execute()
			<-done
		})
	})
	t.Run("ends with the pass", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			over := make(chan struct{})
			out := peek(t.Context(), effect.NewBarrier(), over)
			close(over)
			if got := <-out; got.ok {
				t.Errorf("saw %v", got.action)
			}
		})
	})
	t.Run("ends with its context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			out := peek(ctx, effect.NewBarrier(), nil)
			cancel()
			if got := <-out; got.ok {
				t.Errorf("saw %v", got.action)
			}
		})
	})
}

// Interrupt rejects the parked hit; a later one parks again.
func TestBarrierInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := effect.NewBarrier()
		abort := &effect.AbortRequested{}
		b.Interrupt(abort) // nothing is parked
		done := park(t.Context(), b, request)
		b.Interrupt(abort)
		if err, over := ended(done); !over || !errors.Is(err, error(abort)) {
			t.Errorf("interrupted: %v, %t", err, over)
		}
		next := park(t.Context(), b, settlement)
		if err, over := ended(next); over {
			t.Errorf("the next hit passed: %v", err)
		}
		b.Execute()
		<-next
	})
}

func TestBarrierClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := effect.NewBarrier()
		done := park(t.Context(), b, request)
		b.Close(errClosed)
		b.Close(errors.New("later"))
		if err, over := ended(done); !over || !errors.Is(err, errClosed) {
			t.Errorf("parked: %v, %t", err, over)
		}
		if err := b.Hit(t.Context(), settlement, open); !errors.Is(err, errClosed) {
			t.Errorf("later: %v", err)
		}
		if a, ok := b.Execute(); ok {
			t.Errorf("executed %v", a)
		}
	})
}

func TestBarrierContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := effect.NewBarrier()
		ctx, cancel := context.WithCancelCause(t.Context())
		done := park(ctx, b, request)
		cancel(errClosed)
		if err, over := ended(done); !over || !errors.Is(err, errClosed) {
			t.Errorf("got %v, %t", err, over)
		}
		if a, ok := b.Execute(); ok {
			t.Errorf("executed %v", a)
		}
	})
}

// Execution, interruption and close against each other: a hit ends exactly once
// and says so to exactly one of them.
func TestBarrierRace(t *testing.T) {
	for range 300 {
		b := effect.NewBarrier()
		done := make(chan error)
		go func() { done <- b.Hit(t.Context(), request, open) }()
		if _, ok := b.Peek(t.Context(), nil); !ok {
			t.Fatal("nothing is parked")
		}
		executed := make(chan bool)
		go func() {
			_, ok := b.Execute()
			executed <- ok
		}()
		go b.Interrupt(errClosed)
		err, released := <-done, <-executed
		if released != (err == nil) {
			t.Fatalf("the hit ended with %v, Execute says %t", err, released)
		}
	}
}

// Release rejects whatever is parked, protected or not, once; Interrupt leaves what
// is protected. Later hits park as ever, when they are still admitted.
func TestBarrierProtected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := effect.NewBarrier()
		hit := func(admit func() error) <-chan error {
			done := make(chan error, 1)
			go func() { done <- b.HitProtected(t.Context(), settlement, admit) }()
			synctest.Wait()
			return done
		}
		ordinary, protected := park(t.Context(), b, request), hit(open)
		errInterrupted, errReleased := errors.New("interrupted"), errors.New("released")
		b.Interrupt(errInterrupted)
		if err, over := ended(ordinary); !over || !errors.Is(err, errInterrupted) {
			t.Errorf("ordinary: %v, %t", err, over)
		}
		if err, over := ended(protected); over {
			t.Errorf("protected: %v", err)
		}
		b.Release(errReleased)
		if err, over := ended(protected); !over || !errors.Is(err, errReleased) {
			t.Errorf("protected: %v, %t", err, over)
		}
		refused := errors.New("refused")
		if err, over := ended(hit(func() error { return refused })); !over || !errors.Is(err, refused) {
			t.Errorf("refused: %v, %t", err, over)
		}
		next := hit(open)
		if _, over := ended(next); over {
			t.Error("a hit after a release did not park")
		}
		b.Execute()
		if err, over := ended(next); err != nil || !over {
			t.Errorf("executed: %v, %t", err, over)
		}
	})
	var automatic *effect.Barrier
	automatic.Release(errClosed)
	if err := automatic.HitProtected(t.Context(), request, open); err != nil {
		t.Error(err)
	}
}
