package jsonl

import (
	"fmt"
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/memory"
)

// fault is what is wrong with a line, at an offset in it.
type fault struct {
	at  int
	msg string
}

func faultf(at int, format string, args ...any) *fault {
	return &fault{at, fmt.Sprintf(format, args...)}
}

// item is one decoded record. What it refers to in its line is valid as long as
// the line is.
type item struct {
	record store.Record
	entry  store.Entry    // of an entry record
	usage  store.UsageRow // of a usage record
	sum    message.Usage  // what its usage says
	summed bool           // sum could be read
	ref    []byte         // the parent's or the entry's id, which is to be interned
	place  memory.Place
	line   int // counted from the first of its block
	at     int // where the record starts in its line
	size   int64

	verdict store.Verdict // on its payloads, of an entry or a usage record
}

// decoder turns lines into records, whatever came before them: several can work
// on one file.
//
// Lines that appendLine wrote are recognized by their literal text, so that
// only payloads need a scan; any other order or spelling of members takes the
// slow path, with the same result.
type decoder struct {
	items []item // the records so far
	ids   arena
	names map[string]string // recurring strings
	judge bool              // payloads are judged as well

	item   *item         // the one that is being made
	record *store.Record // of it; so are the next
	entry  *store.Entry
	usage  *store.UsageRow
	place  *memory.Place
	ref    *[]byte

	verdict *store.Verdict
}

func newDecoder(judge bool) *decoder { return &decoder{names: make(map[string]string), judge: judge} }

// push starts the next item, in the memory of an earlier one if there was one.
func (d *decoder) push() *item {
	if n := len(d.items); n < cap(d.items) {
		d.items = d.items[:n+1]
	} else {
		d.items = append(d.items, item{})
	}
	it := &d.items[len(d.items)-1]
	d.item = it
	d.record, d.entry, d.usage, d.place, d.ref = &it.record, &it.entry, &it.usage, &it.place, &it.ref
	d.verdict = &it.verdict
	d.clear()
	return it
}

func (d *decoder) clear() {
	*d.record, *d.place, *d.ref, *d.verdict = store.Record{}, memory.Place{}, nil, store.Verdict{}
	d.item.summed = false
}

// line decodes the commit that one line holds. base is the line's offset in the
// file, number that in its block.
func (d *decoder) line(line []byte, base int64, number int) *fault {
	i := skipSpace(line, 0)
	if i == len(line) {
		return faultf(0, "line is blank")
	}
	var bad *fault
	switch line[i] {
	case '{':
		i, bad = d.element(line, i, base, number)
	case '[':
		i, bad = d.array(line, i, base, number)
	default:
		return faultf(i, "line is no JSON object or array")
	}
	if bad != nil {
		return bad
	}
	if i = skipSpace(line, i); i < len(line) {
		return faultf(i, "text follows the commit")
	}
	return nil
}

func (d *decoder) array(line []byte, i int, base int64, number int) (int, *fault) {
	for first := true; ; first = false {
		i = skipSpace(line, i+1)
		switch {
		case i < len(line) && line[i] == ']' && first:
			return i, faultf(i, "commit is empty")
		case i >= len(line) || line[i] != '{':
			return i, faultf(i, "element of the commit is no JSON object")
		}
		var bad *fault
		if i, bad = d.element(line, i, base, number); bad != nil {
			return i, bad
		}
		i = skipSpace(line, i)
		switch {
		case i < len(line) && line[i] == ']':
			return i + 1, nil
		case i >= len(line) || line[i] != ',':
			return i, faultf(i, "expected a comma or the end of the commit")
		}
	}
}

// element decodes the object at line[i] and returns the index after it.
func (d *decoder) element(line []byte, i int, base int64, number int) (int, *fault) {
	it := d.push()
	end, bad := d.object(line, i)
	if bad != nil {
		d.items = d.items[:len(d.items)-1]
		return i, bad
	}
	it.place = moved(it.place, base)
	it.line, it.at, it.size = number, i, int64(end-i+len("\n"))
	if it.record.Kind == store.KindUsage {
		if !it.summed {
			sum, err := message.ParseUsage(it.usage.Usage)
			it.sum, it.summed = sum, err == nil
		}
		it.verdict.Sound = d.judge && it.summed && rawjson.ValidUTF8(it.usage.Usage) < 0 && rawjson.ValidUTF8(it.usage.Details) < 0
	}
	return end, nil
}

// object decodes the object at line[i] into the newest item; the offsets of its
// place are in line.
func (d *decoder) object(line []byte, i int) (end int, bad *fault) {
	c := cursor{b: line, i: i}
	switch {
	case c.takes(`{"kind":"value","op":"`):
		d.record.Kind = store.KindValue
		d.fastAddressed(&c)
	case c.takes(`{"kind":"list","op":"`):
		d.record.Kind = store.KindList
		d.fastAddressed(&c)
	case c.takes(`{"kind":"entry","seq":`):
		d.fastEntry(&c)
	case c.takes(`{"kind":"usage","seq":`):
		d.fastUsage(&c)
	default:
		c.bad = true
	}
	if c.bad {
		return d.slow(line, i)
	}
	return c.i, nil
}

func (d *decoder) fastEntry(c *cursor) {
	e := d.entry
	*e = store.Entry{}
	d.record.Kind = store.KindEntry
	e.Seq = c.integer()
	c.literal(`,"timestamp":`)
	e.Timestamp = c.integer()
	c.literal(`,"id":`)
	id := c.name()
	c.literal(`,"parentId":`)
	if !c.takes("null") {
		*d.ref = c.name()
		c.bad = c.bad || len(*d.ref) == 0
	}
	c.literal(`,"type":`)
	e.Type = store.EntryType(d.name(c.name()))
	if e.Type == store.TypeCustom {
		c.literal(`,"customType":`)
		e.CustomType = d.name(c.name())
	}
	start := c.i
	if d.payload(c); c.bad || len(id) == 0 || e.Type == "" {
		c.bad = true
		return
	}
	if members := spanOf(start, c.i); members.Len > 1 {
		d.place.Payload = members
	}
	d.record.Seq, e.ID = e.Seq, d.ids.add(id)
}

// payload passes over the rest of an entry. Where payloads are judged, that of a
// message is read once for both.
func (d *decoder) payload(c *cursor) {
	start := c.i
	if d.judge && d.entry.Type == store.TypeMessage && c.takes(",") {
		c.b[start] = '{' // which makes the rest of the record the payload
		verdict, size := store.JudgeMessage(c.b[start:])
		c.b[start] = ','
		if c.i = start + size; verdict.Sound {
			*d.verdict = verdict
			return
		}
		c.i = start
	}
	for c.takes(",") {
		c.text()
		c.literal(":")
		c.value()
	}
	c.literal("}")
	if d.judge && d.entry.Type == store.TypeCustom && !c.bad {
		d.verdict.Sound = rawjson.ValidUTF8(c.b[start:c.i]) < 0
	}
}

func (d *decoder) fastUsage(c *cursor) {
	u := d.usage
	*u = store.UsageRow{}
	d.record.Kind = store.KindUsage
	u.Seq = c.integer()
	c.literal(`,"id":`)
	id := c.name()
	if c.takes(`,"entryId":`) {
		*d.ref = c.name()
	}
	if u.Adjustment = c.takes(`,"adjustment":true`); !u.Adjustment {
		c.literal(`,"adjustment":false`)
	}
	c.literal(`,"usage":`)
	if sum, end, ok := message.ReadUsage(c.b, c.i); ok && !c.bad {
		u.Usage, d.place.Payload = c.b[c.i:end:end], spanOf(c.i, end)
		c.i = end
		d.item.sum, d.item.summed = sum, true
	} else {
		u.Usage, d.place.Payload = c.value()
	}
	if c.takes(`,"details":`) {
		u.Details, d.place.Details = c.value()
	}
	c.literal("}")
	if c.bad || len(id) == 0 || u.Usage[0] != '{' {
		c.bad = true
		return
	}
	d.record.Seq, u.ID = u.Seq, d.ids.add(id)
}

func (d *decoder) fastAddressed(c *cursor) {
	r := d.record
	switch {
	case r.Kind == store.KindValue && c.takes(`set","seq":`):
		r.Op = store.OpSet
	case r.Kind == store.KindList && c.takes(`append","seq":`):
		r.Op = store.OpAppend
	case c.takes(`delete","seq":`):
		r.Op = store.OpDelete
	default:
		c.bad = true
		return
	}
	r.Seq = c.integer()
	c.literal(`,"namespace":`)
	r.Address.Namespace = d.name(c.name())
	c.literal(`,"key":`)
	r.Address.Key = d.name(c.name())
	if r.Op != store.OpDelete {
		c.literal(`,"value":`)
		r.Value, d.place.Payload = c.value()
	}
	c.literal("}")
	c.bad = c.bad || r.Address.Namespace == ""
}

// maxNames bounds the strings that are remembered for re-use.
const maxNames = 1024

func (d *decoder) name(b []byte) string {
	if s, ok := d.names[string(b)]; ok {
		return s
	}
	if len(d.names) >= maxNames {
		clear(d.names)
	}
	s := string(b)
	d.names[s] = s
	return s
}

// arena copies strings that live as long as the state into shared blocks.
type arena struct{ block strings.Builder }

const arenaBlock = 16 << 10

func (a *arena) add(b []byte) string {
	if a.block.Cap()-a.block.Len() < len(b) {
		a.block = strings.Builder{}
		a.block.Grow(max(arenaBlock, len(b)))
	}
	start := a.block.Len()
	a.block.Write(b)
	return a.block.String()[start:]
}
