package store

import (
	"fmt"
	"runtime/debug"
)

// Panicked is a defect that was caught at an edge: what was running is in an
// unknown state, what is committed is not.
type Panicked struct {
	Value any
	Stack []byte // of the goroutine that panicked
}

func (e *Panicked) Error() string { return fmt.Sprintf("internal error: %v", e.Value) }

// Guard runs work that a panic must not let end the process: it faults the
// session instead, as a failed commit does (spec §4.8). Every goroutine that works
// on a session needs its own.
func (s *Session) Guard(work func() error) (err error) {
	defer s.caught(&err)
	return work()
}

// caught, deferred, is Guard for a function that has its result at hand.
func (s *Session) caught(err *error) {
	if value := recover(); value != nil {
		*err = s.failed(&Panicked{Value: value, Stack: debug.Stack()})
	}
}
