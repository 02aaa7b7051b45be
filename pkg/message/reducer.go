package message

import "fmt"

// FrameError reports a frame that contradicts the ones before it, or that is
// no frame at all.
type FrameError struct {
	Seq int64 // of the frame; for AddEvent the number of the event, from 1
	Msg string
}

func (e *FrameError) Error() string { return fmt.Sprintf("reduce frame %d: %s", e.Seq, e.Msg) }

// Reducer folds a prefix of a response's frames, or its live events, into the
// partial message they add up to. The zero value is ready. After an error it
// holds what it held before the frame that caused it.
type Reducer struct{}

// Add folds in the frame with the given seq. The error is a *FrameError.
func (r *Reducer) Add(seq int64, f Frame) error { return nil }

// AddEvent folds in a live event, without a detour over JSON; done and error
// change nothing. The error is a *FrameError.
func (r *Reducer) AddEvent(ev StreamEvent) error { return nil }

// Partial returns the message so far; false before the start.
func (r *Reducer) Partial() (Assistant, bool) { return Assistant{}, false }

// Message is Partial as a message that keeps the start message's unknown fields.
func (r *Reducer) Message() (Message, bool) { return nil, false }

// Reduce folds frames, numbered from 0, into a partial message; false when
// there is no start.
func Reduce(frames []Frame) (Message, bool, error) { return nil, false, nil }
