package openai

import (
	"bufio"
	"bytes"
	"io"
	"runtime"
	"slices"

	"github.com/drover-run/drover/internal/rawjson"
)

// repeated are the events that say once more what the deltas before them and the
// item's end after them say. For a long answer each is as long as all of it.
var repeated = [...]string{
	"response.output_text.done", "response.content_part.done", "response.refusal.done",
	"response.reasoning_summary_text.done", "response.reasoning_summary_part.done",
	"response.reasoning_text.done", "response.function_call_arguments.done",
}

// eventReader reads server-sent events. The SDK's own reader ends at lines of 32
// MiB, and the Responses API sends an answer's whole text in one.
type eventReader struct {
	r     *bufio.Reader
	data  []byte
	total int // bytes of data in short events
}

func newEventReader(r io.Reader) *eventReader {
	return &eventReader{r: bufio.NewReaderSize(r, 64<<10)}
}

// next returns the data of the next event, leaving out repeated ones. It is valid
// until the next call. The error is io.EOF where the stream ends between two
// events and io.ErrUnexpectedEOF where it ends in one.
func (e *eventReader) next() ([]byte, error) {
	if len(e.data) <= longEvent {
		e.total += len(e.data)
	}
	e.data = e.data[:0]
	lines, skip := 0, false
	for {
		line, err := e.r.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull {
			return e.last(line, lines, skip, err)
		}
		text := bytes.TrimRight(line, "\r\n")
		name, value, _ := bytes.Cut(text, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		keep := false
		switch {
		case len(text) == 0 && err == nil:
			if lines > 0 && !skip {
				return e.data, nil
			}
			lines, skip = 0, false
			e.data = e.data[:0]
		case string(name) == "event":
			skip = isRepeated(value)
		case string(name) == "data":
			if keep = !skip; keep && lines > 0 {
				e.data = append(e.data, '\n')
			}
			lines++
		}
		if keep {
			e.add(value)
		}
		for err == bufio.ErrBufferFull {
			if line, err = e.r.ReadSlice('\n'); keep {
				e.add(bytes.TrimRight(line, "\r\n"))
			}
		}
		if err != nil {
			return e.last(nil, lines, skip, err)
		}
	}
}

const (
	longEvent = 256 << 10 // bytes from which an event repeats what came in short ones
	hugeEvent = 4 << 20   // bytes from which an event is worth a collection
)

// add appends to the data. The memory of a long event is made at once, and a huge
// one's in the place of what the short ones left (D41).
func (e *eventReader) add(data []byte) {
	if n := len(e.data) + len(data); n > cap(e.data) && n > longEvent {
		if e.total > hugeEvent {
			runtime.GC()
		}
		e.data = slices.Grow(e.data, max(len(data), e.total-len(e.data)))
	}
	e.data = append(e.data, data...)
}

// release gives up the memory of a huge event.
func (e *eventReader) release() {
	if cap(e.data) > hugeEvent {
		e.data = nil
	}
}

// last ends the stream. Servers may leave out the empty line after the last event.
func (e *eventReader) last(line []byte, lines int, skip bool, err error) ([]byte, error) {
	if err != io.EOF {
		return nil, err
	}
	if value, ok := bytes.CutPrefix(line, []byte("data:")); ok && lines == 0 {
		e.data, lines = append(e.data, bytes.TrimPrefix(value, []byte(" "))...), 1
	}
	switch {
	case lines > 0 && !skip && rawjson.Valid(e.data) == nil:
		return e.data, nil
	case lines > 0 || len(line) > 0:
		return nil, io.ErrUnexpectedEOF
	}
	return nil, io.EOF
}

func isRepeated(event []byte) bool {
	for _, name := range repeated {
		if string(event) == name {
			return true
		}
	}
	return false
}
