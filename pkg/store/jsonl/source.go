package jsonl

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/memory"
)

// source reads payloads out of the file. A value is exactly what its span
// covers. An entry's span covers the rest of its record: the comma before the
// first payload member, the members, the closing brace. With a brace in the
// place of the comma that is the payload.
type source struct{ f io.ReaderAt }

// Payloads reads entry payloads.
func (s source) Payloads(spans []memory.Span) ([]json.RawMessage, error) {
	raws, err := s.Values(spans)
	for _, raw := range raws {
		raw[0] = '{'
	}
	return raws, err
}

// Spans that lie close together are read in one go, up to this many bytes.
const window = 256 << 10

// Values reads what the spans cover.
func (s source) Values(spans []memory.Span) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, len(spans))
	for i := 0; i < len(spans); {
		n, lo, hi := group(spans[i:])
		text := make([]byte, hi-lo)
		if err := s.read(text, lo); err != nil {
			return nil, err
		}
		for ; n > 0; n-- {
			at := spans[i].Off - lo
			end := at + spans[i].Len
			out[i] = text[at:end:end]
			i++
		}
	}
	return out, nil
}

// group returns how many of the first spans, in either direction, are worth one
// read, and the range to read.
func group(spans []memory.Span) (n int, lo, hi int64) {
	lo, hi = spans[0].Off, spans[0].Off+spans[0].Len
	wanted := spans[0].Len
	for n = 1; n < len(spans); n++ {
		s := spans[n]
		wanted += s.Len
		newLo, newHi := min(lo, s.Off), max(hi, s.Off+s.Len)
		if newHi-newLo > window || newHi-newLo > 2*wanted {
			break
		}
		lo, hi = newLo, newHi
	}
	return n, lo, hi
}

func (s source) read(b []byte, off int64) error {
	_, err := s.f.ReadAt(b, off)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrClosed):
		return store.ErrClosed
	case errors.Is(err, io.EOF):
		return fmt.Errorf("session file ends before byte %d: %w", off+int64(len(b)), io.ErrUnexpectedEOF)
	}
	return err
}
