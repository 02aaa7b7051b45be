package jsonl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/store"
)

// Salvage reads the session line by line: one that cannot be read is told, and
// those behind it are read all the same.
func (d Driver) Salvage(ctx context.Context, path string) (*store.Salvage, error) {
	real, err := resolve(path)
	if err != nil {
		return nil, err
	}
	f, err := d.fs().OpenFile(real, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	s := &salvage{ctx: ctx, file: f, begin: 1}
	out, err := s.open(path)
	if err == nil {
		err = s.survey()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	out.Records, out.Close = s.records, f.Close
	return out, nil
}

// salvage is the reading of one damaged file.
type salvage struct {
	ctx   context.Context
	file  fsx.File
	size  int64
	begin int64 // the number of the first line that may hold records

	values map[store.Address]int64 // which write set the value, 0 once it is deleted
	lists  map[store.Address]int64 // which write emptied the list last
	stray  map[int64]bool          // lines whose sequence numbers fit in nowhere
}

// open reads the header. A first line that is none may still hold records.
func (s *salvage) open(path string) (*store.Salvage, error) {
	info, err := s.file.Stat()
	if err != nil {
		return nil, err
	}
	s.size = info.Size()
	h, _, _, err := readHeader(s.file, path, s.size)
	damaged, lost := errors.AsType[*store.Corrupt](err)
	switch {
	case lost:
		return &store.Salvage{HeaderLost: damaged.Msg}, nil
	case err != nil:
		return nil, err
	}
	s.begin = 2
	return &store.Salvage{Header: h}, nil
}

// span is the first and last sequence number of a line.
type span struct{ line, first, last int64 }

// survey finds the lines whose numbers do not fit, then which values and list
// elements survive.
func (s *salvage) survey() error {
	var spans []span
	rising, last := true, int64(0)
	err := s.lines(func(at spot, items []item, _ *lineFault) bool {
		if len(items) == 0 {
			return true
		}
		p := span{at.line, items[0].record.Seq, items[len(items)-1].record.Seq}
		rising = rising && p.first > last
		last = p.last
		spans = append(spans, p)
		return true
	})
	if err != nil {
		return err
	}
	if !rising {
		s.stray = strays(spans)
	}
	s.values, s.lists = make(map[store.Address]int64), make(map[store.Address]int64)
	return s.lines(func(at spot, items []item, _ *lineFault) bool {
		for i := range items {
			if !s.stray[at.line] {
				s.fold(&items[i].record)
			}
		}
		return true
	})
}

func (s *salvage) fold(r *store.Record) {
	switch {
	case r.Kind == store.KindValue && r.Op == store.OpDelete:
		delete(s.values, r.Address)
	case r.Kind == store.KindValue:
		s.values[r.Address] = r.Seq
	case r.Kind == store.KindList && r.Op == store.OpDelete:
		s.lists[r.Address] = r.Seq
	}
}

// strays returns the lines outside the longest run of lines whose numbers rise:
// one damaged number must not cost the lines behind it.
func strays(spans []span) map[int64]bool {
	var tails []int // the last line of the best run of each length
	before := make([]int, len(spans))
	for i, p := range spans {
		k, _ := slices.BinarySearchFunc(tails, p.first, func(t int, first int64) int {
			if spans[t].last < first {
				return -1
			}
			return 1
		})
		before[i] = -1
		if k > 0 {
			before[i] = tails[k-1]
		}
		switch {
		case k == len(tails):
			tails = append(tails, i)
		case p.last < spans[tails[k]].last:
			tails[k] = i
		}
	}
	stray := make(map[int64]bool)
	for _, p := range spans {
		stray[p.line] = true
	}
	for i := tails[len(tails)-1]; i >= 0; i = before[i] {
		delete(stray, spans[i].line)
	}
	return stray
}

// lineFault is why a line could not be read to its end.
type lineFault struct {
	fault
	rest []byte // of the line, from the record that is damaged
	torn bool   // it is the last line, without a newline
}

// spot is a line and where it lies in the file.
type spot struct {
	line, offset int64
	text         []byte
}

// lines decodes every line that may hold records, with what is readable of a
// damaged one: its first records. What use gets is valid until it returns.
func (s *salvage) lines(use func(at spot, items []item, bad *lineFault) bool) error {
	r := newLineReader(s.file, 0, s.size, blockSize)
	d := newDecoder(false)
	for n := int64(1); ; n++ {
		line, offset, whole, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = context.Cause(s.ctx)
		}
		if err != nil {
			return err
		}
		if n < s.begin {
			continue
		}
		d.items = d.items[:0]
		var bad *lineFault
		if f := d.line(line, 0, 0); f != nil {
			rest := line
			if k := len(d.items); k > 0 {
				last := d.items[k-1]
				rest = line[min(int64(len(line)), int64(last.at)+last.size-1):]
			}
			bad = &lineFault{fault: *f, rest: rest, torn: !whole}
		}
		if !use(spot{n, offset, line}, d.items, bad) {
			return nil
		}
	}
}

// records gives what survives, and tells every line that is damaged.
func (s *salvage) records(lost func(store.Loss)) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		stopped := false
		err := s.lines(func(at spot, items []item, bad *lineFault) bool {
			if s.stray[at.line] {
				lost(store.Loss{Code: "order", Where: place(at.line, at.offset), Message: "its sequence numbers fit in nowhere"})
				return true
			}
			for i := range items {
				if r := items[i].whole(at.text); s.survives(&r) {
					if stopped = !yield(r, nil); stopped {
						return false
					}
				}
			}
			if bad != nil {
				lost(bad.loss(at.line, at.offset))
			}
			return true
		})
		if err != nil && !stopped {
			yield(store.Record{}, err)
		}
	}
}

func (s *salvage) survives(r *store.Record) bool {
	switch r.Kind {
	case store.KindValue:
		return r.Op == store.OpSet && s.values[r.Address] == r.Seq
	case store.KindList:
		return r.Op == store.OpAppend && s.lists[r.Address] < r.Seq
	}
	return true
}

func place(n, offset int64) string { return fmt.Sprintf("line %d, byte %d", n, offset) }

func (f *lineFault) loss(n, offset int64) store.Loss {
	l := store.Loss{Code: "line", Where: place(n, offset+int64(f.at)), Message: f.msg}
	if f.torn {
		l.Code = "torn_tail"
	}
	l.EntryID, l.ParentID = lineage(f.rest)
	return l
}

// lineage reads where in the tree a damaged entry stood, when the damage comes
// after that.
func lineage(rest []byte) (id, parent string) {
	const begins = `{"kind":"entry","seq":`
	at := bytes.Index(rest, []byte(begins))
	if at < 0 {
		return "", ""
	}
	c := cursor{b: rest, i: at + len(begins)}
	c.integer()
	c.literal(`,"timestamp":`)
	c.integer()
	c.literal(`,"id":`)
	name := c.name()
	c.literal(`,"parentId":`)
	var up []byte
	if !c.takes("null") {
		up = c.name()
	}
	if c.bad {
		return "", ""
	}
	return string(name), string(up)
}

// whole is the record with payloads of its own, of an item of the line.
func (it *item) whole(line []byte) store.Record {
	r := it.record
	switch r.Kind {
	case store.KindEntry:
		e := it.entry
		if len(it.ref) > 0 {
			e.ParentID = string(it.ref)
		}
		if at := it.place.Payload; at.Len > 0 {
			e.Payload = bytes.Clone(line[at.Off : at.Off+at.Len])
			e.Payload[0] = '{' // in the place of the comma, see source
		} else if e.Payload == nil {
			e.Payload = []byte("{}")
		}
		r.Entry = &e
	case store.KindUsage:
		u := it.usage
		if len(it.ref) > 0 {
			u.EntryID = string(it.ref)
		}
		r.Usage = &u
	}
	r.Detach()
	return r
}
