package effect_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/drover-run/drover/pkg/engine/effect"
)

var errClosed = errors.New("closed for the test")

// effectOf is an effect that counts its starts and ends with its context.
func effectOf(starts *atomic.Int32) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		starts.Add(1)
		<-ctx.Done()
		return "partial", context.Cause(ctx)
	}
}

// Abort first: the effect never starts, and the refusal carries the promise of
// the durable marker (§4.2).
func TestGateAbortFirst(t *testing.T) {
	var starts atomic.Int32
	g := effect.NewGate(t.Context())
	settled := make(chan struct{})
	g.BeginAbort(settled)
	got, err := effect.Admit(g, effectOf(&starts))
	var abort *effect.AbortRequested
	if !errors.As(err, &abort) || abort.Settled != (<-chan struct{})(settled) || got != "" || starts.Load() != 0 {
		t.Errorf("got %q, %v after %d starts", got, err, starts.Load())
	}
	if err := g.Context().Err(); err != nil {
		t.Errorf("the signal was pulled before the marker is durable: %v", err)
	}
}

// Admission first: the effect runs on, and hears of the abort only once the
// marker is durable.
func TestGateAdmissionFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var starts atomic.Int32
		g := effect.NewGate(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := effect.Admit(g, effectOf(&starts))
			done <- err
		}()
		synctest.Wait()
		g.BeginAbort(make(chan struct{}))
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("the effect ended before the signal: %v", err)
		default:
		}
		g.Signal()
		var abort *effect.AbortRequested
		if err := <-done; !errors.As(err, &abort) || starts.Load() != 1 {
			t.Errorf("got %v after %d starts", err, starts.Load())
		}
	})
}

func TestGateClose(t *testing.T) {
	t.Run("refuses with its reason and ends what runs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var starts atomic.Int32
			g := effect.NewGate(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := effect.Admit(g, effectOf(&starts))
				done <- err
			}()
			synctest.Wait()
			g.Close(errClosed)
			if err := <-done; !errors.Is(err, errClosed) {
				t.Errorf("the running effect ended with %v", err)
			}
			if _, err := effect.Admit(g, effectOf(&starts)); !errors.Is(err, errClosed) || starts.Load() != 1 {
				t.Errorf("got %v after %d starts", err, starts.Load())
			}
		})
	})
	t.Run("the first close wins", func(t *testing.T) {
		g := effect.NewGate(t.Context())
		g.Close(errClosed)
		g.Close(errors.New("later"))
		g.BeginAbort(make(chan struct{}))
		if _, err := effect.Admit(g, effectOf(new(atomic.Int32))); !errors.Is(err, errClosed) {
			t.Errorf("refused with %v", err)
		}
		if err := context.Cause(g.Context()); !errors.Is(err, errClosed) {
			t.Errorf("the signal's cause is %v", err)
		}
	})
	t.Run("wins over an abort that began", func(t *testing.T) {
		g := effect.NewGate(t.Context())
		g.BeginAbort(make(chan struct{}))
		g.Close(errClosed)
		if _, err := effect.Admit(g, effectOf(new(atomic.Int32))); !errors.Is(err, errClosed) {
			t.Errorf("refused with %v", err)
		}
	})
}

func TestGateFirstAbortStays(t *testing.T) {
	g := effect.NewGate(t.Context())
	first := make(chan struct{})
	g.BeginAbort(first)
	g.BeginAbort(make(chan struct{}))
	_, err := effect.Admit(g, effectOf(new(atomic.Int32)))
	var abort *effect.AbortRequested
	if !errors.As(err, &abort) || abort.Settled != (<-chan struct{})(first) {
		t.Errorf("got %v", err)
	}
}

func TestGateParent(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	g := effect.NewGate(parent)
	cancel()
	if g.Context().Err() == nil {
		t.Error("the parent's end does not reach effects")
	}
}

// Admissions against an abort, many times over: none starts once the abort has
// begun, and each that started hears of it.
func TestGateRace(t *testing.T) {
	for range 200 {
		g := effect.NewGate(t.Context())
		var began, late atomic.Bool
		results := make(chan error)
		for range 4 {
			go func() {
				after := began.Load()
				_, err := effect.Admit(g, func(ctx context.Context) (int, error) {
					if after {
						late.Store(true)
					}
					<-ctx.Done()
					return 0, context.Cause(ctx)
				})
				results <- err
			}()
		}
		g.BeginAbort(make(chan struct{}))
		began.Store(true)
		g.Signal()
		for range 4 {
			var abort *effect.AbortRequested
			if err := <-results; !errors.As(err, &abort) {
				t.Fatalf("ended with %v", err)
			}
		}
		if late.Load() {
			t.Fatal("an effect started after the abort")
		}
	}
}

// An abort closes the gate to what is ordinary, a close to everything.
func TestGateClosed(t *testing.T) {
	g := effect.NewGate(t.Context())
	g.BeginAbort(make(chan struct{}))
	if err := g.Closed(); err != nil || g.Check() == nil {
		t.Errorf("aborting: %v, %v", err, g.Check())
	}
	g.Close(errClosed)
	if err := g.Closed(); !errors.Is(err, errClosed) {
		t.Errorf("closed: %v", err)
	}
}
