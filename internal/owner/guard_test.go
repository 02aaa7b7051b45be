package owner

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/store"
)

// breaking is a store with a defect that shows once it is armed.
type breaking struct {
	store.Backend
	armed *atomic.Bool
}

func (b breaking) Value(ctx context.Context, at store.Address) (store.StoredValue, bool, error) {
	if b.armed.Load() && at.Namespace == "pi.pending.entry" {
		panic("a defect of ours")
	}
	return b.Backend.Value(ctx, at)
}

// A defect behind a request is answered, faults the session, and leaves the
// process alive (spec §4.8).
func TestPanicOfARequest(t *testing.T) {
	world, armed := enginetest.InMemory(t), new(atomic.Bool)
	world.Decorate = func(b store.Backend) store.Backend { return breaking{b, armed} }
	h := build(t, world, enginetest.Say("yes"), terms{peer: peerUID, line: maxLine, backlog: maxBacklog})
	c := h.dial(t)
	armed.Store(true)
	_, err := c.NextRun(t.Context(), "", engine.Queued{Text: "x"})
	wantRefusal(t, err, &RemoteError{Code: "fault", Message: "internal error: a defect of ours"})
	var panicked *store.Panicked
	if fault := h.Session.Fault(); !errors.As(fault, &panicked) {
		t.Errorf("the session's fault is %v", fault)
	}
}

// A wait that the caller breaks off leaves nothing to close.
func TestCloseAfterAWaitThatRanOut(t *testing.T) {
	h := newHouse(t, enginetest.Reply{Chunks: []string{"wait"}, Hang: true})
	id, ended := h.hang(t)
	c := must[*Client](t)(Dial(t.Context(), h.lease, DialOptions{SessionID: "world", Path: "world.db"}))
	over, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	if _, err := c.WaitOperation(over, "", id); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the wait ends with %v", err)
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	must[AbortResult](t)(h.dial(t).Abort(t.Context(), "", id, false))
	<-ended
}
