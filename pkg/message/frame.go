package message

import "encoding/json"

// Frame is one durable step of a streamed answer: a stream event without the
// growing message (spec §3.7), as raw JSON.
type Frame json.RawMessage

// FrameOf returns the frame of an event; done and error have none.
func FrameOf(ev StreamEvent) (Frame, bool) { return nil, false }

// AppendJSON appends the frame verbatim.
func (f Frame) AppendJSON(dst []byte) ([]byte, error) { return append(dst, f...), nil }

// MarshalJSON returns the frame verbatim.
func (f Frame) MarshalJSON() ([]byte, error) { return f, nil }

// UnmarshalJSON keeps a copy of data verbatim.
func (f *Frame) UnmarshalJSON(data []byte) error {
	*f = append(Frame(nil), data...)
	return nil
}
