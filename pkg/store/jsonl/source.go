package jsonl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

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

const (
	// Spans that lie close together are read in one go, up to this many bytes.
	window = 256 << 10
	// A call costs more than reading as many bytes for nothing.
	gap = 4 << 10
)

// Values reads what the spans cover.
func (s source) Values(spans []memory.Span) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, len(spans))
	var scratch []byte
	for i := 0; i < len(spans); {
		g := group(spans[i:])
		text := g.buffer(&scratch)
		if err := s.read(text, g.lo); err != nil {
			return nil, err
		}
		for range g.n {
			at := spans[i].Off - g.lo
			end := at + spans[i].Len
			if out[i] = text[at:end:end]; g.sparse() {
				out[i] = bytes.Clone(out[i])
			}
			i++
		}
	}
	return out, nil
}

// reach is a range of the file that holds the first n spans.
type reach struct {
	n              int
	lo, hi, wanted int64
}

// sparse: most of the range is of no use, and must not be kept in memory for the
// rest of it.
func (g reach) sparse() bool { return g.hi-g.lo > 2*g.wanted }

func (g reach) buffer(scratch *[]byte) []byte {
	size := int(g.hi - g.lo)
	if !g.sparse() {
		return make([]byte, size)
	}
	*scratch = slices.Grow((*scratch)[:0], size)
	return (*scratch)[:size]
}

// group returns how many of the first spans, in either direction, are worth one
// read, and the range to read.
func group(spans []memory.Span) reach {
	g := reach{n: 1, lo: spans[0].Off, hi: spans[0].Off + spans[0].Len, wanted: spans[0].Len}
	for _, s := range spans[1:] {
		next := reach{g.n + 1, min(g.lo, s.Off), max(g.hi, s.Off+s.Len), g.wanted + s.Len}
		if next.hi-next.lo > window || next.hi-next.lo > g.hi-g.lo+s.Len+gap && next.sparse() {
			break
		}
		g = next
	}
	return g
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
