package enginetest

import (
	"math/rand/v2"
	"sync/atomic"

	"github.com/drover-run/drover/pkg/store"
)

// Start is where every clock begins, Unix ms.
const Start = int64(1_700_000_000_000)

// Clock is a clock that only the test moves.
type Clock struct{ now atomic.Int64 }

// NewClock returns a clock that shows Start.
func NewClock() *Clock {
	c := &Clock{}
	c.now.Store(Start)
	return c
}

// Now is the clock's time, Unix ms.
func (c *Clock) Now() int64 { return c.now.Load() }

// Advance moves the clock forward by ms.
func (c *Clock) Advance(ms int64) { c.now.Add(ms) }

// newIDs mints the same UUIDv7s in every world whose clock shows the same.
func newIDs(now func() int64) store.IDSource {
	return store.NewIDs(now, rand.NewChaCha8([32]byte{}))
}
