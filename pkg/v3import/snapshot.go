package v3import

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
)

// writer makes the records of a snapshot: the second pass over a file.
type writer struct {
	*tree
	seq  int64
	main window // follows the entries
	past window // follows kept ranges
	obj  *object
	obj2 *object // of kept ranges
}

// Snapshot gives the session's records in sequence order: entries, parents
// before children; the one usage row; main's leaf and state, without
// configuration; the name and the labels. It may be taken more than once, each
// time with the same records. It reads the file while it is read, and ends with
// *Changed when the file was rewritten in the meantime. Its Close does nothing: Close
// the session.
func (s *Session) Snapshot() *store.Snapshot {
	return &store.Snapshot{
		Header:  s.Header,
		NextSeq: s.nextSeq(),
		Size:    s.Bytes,
		Records: s.records,
		Close:   func() error { return nil },
	}
}

// nextSeq is the sequence number behind those of all records.
func (s *Session) nextSeq() int64 {
	after := s.Report.Entries + 1 + 2 + int64(len(s.tree.marks)) + 1
	if s.tree.title != "" {
		after++
	}
	return after
}

func (s *Session) records(yield func(store.Record, error) bool) {
	t := s.tree
	w := &writer{
		tree: t, obj: newObject(), obj2: newObject(),
		main: window{src: t.file, size: t.size}, past: window{src: t.file, size: t.size},
	}
	entries := w.entries
	if t.size > pipeFrom {
		entries = piped(entries)
	}
	for e, err := range entries {
		if err != nil {
			yield(store.Record{}, s.readError(err))
			return
		}
		if !yield(store.Record{Kind: store.KindEntry, Seq: e.Seq, Entry: e}, nil) {
			return
		}
	}
	if err := s.unchanged(); err != nil {
		yield(store.Record{}, err)
		return
	}
	usage, err := s.usageRow(w.next())
	if err != nil {
		yield(store.Record{}, err)
		return
	}
	if !yield(usage, nil) {
		return
	}
	for _, v := range w.values() {
		if !yield(v, nil) {
			return
		}
	}
}

// entries makes the entries, parents before children.
func (w *writer) entries(yield func(*store.Entry, error) bool) {
	for _, i := range w.order {
		if !w.records[i].kind.kept() {
			continue
		}
		if w.o.tick != nil {
			w.o.tick(int64(w.records[i].size) + 1)
		}
		e, err := w.entry(i)
		if !yield(e, err) || err != nil {
			return
		}
	}
}

// readError says of an error of the second pass that the file changed, when it
// did: the first pass had read all of it.
func (s *Session) readError(err error) error {
	if changed := s.unchanged(); changed != nil {
		return changed
	}
	return fmt.Errorf("read %s: %w", s.Path, err)
}

func (w *writer) next() int64 {
	w.seq++
	return w.seq
}

func (w *writer) entry(i int32) (*store.Entry, error) {
	r := &w.records[i]
	e := &store.Entry{Structure: store.Structure{ID: r.id, Timestamp: r.ts, Seq: w.next()}}
	if r.parent != none {
		e.ParentID = w.idOf(w.near[r.parent])
	}
	var err error
	e.Type, e.CustomType, e.Payload, err = w.payload(i)
	return e, err
}

// idOf is the entry id of a kept record, "" for none.
func (w *writer) idOf(i int32) string {
	if i == none {
		return ""
	}
	return w.records[i].id
}

// usageRow is the one aggregate adjustment of Appendix B, dated by the newest
// record, so that usage by day is not the day of the import.
func (s *Session) usageRow(seq int64) (store.Record, error) {
	usage, err := s.Report.Usage.AppendJSON(nil)
	if err != nil {
		return store.Record{}, fmt.Errorf("sum usage of %s: %w", s.Path, err)
	}
	m := minter{source: s.tree.o.IDs, seed: s.Header.ID}
	return store.Record{Kind: store.KindUsage, Seq: seq, Usage: &store.UsageRow{
		ID: m.at(s.spot, -1), Seq: seq, Adjustment: true, Usage: usage, Details: json.RawMessage(`{"source":"v3-import"}`),
	}}, nil
}

// values are main's leaf and idle state, the session's name and the labels.
func (w *writer) values() []store.Record {
	writes := []store.Write{
		store.LaneLeaf(store.MainLane).Set(store.LeafID(w.idOf(w.leaf))),
		store.LaneStateOf(store.MainLane).Set(store.LaneState{PendingNextRun: []string{}}),
	}
	if w.title != "" {
		writes = append(writes, store.SessionName().Set(w.title))
	}
	for _, m := range w.marks {
		writes = append(writes, store.EntryLabel(w.idOf(m.entry)).Set(m.text))
	}
	out := make([]store.Record, len(writes))
	for i, v := range writes {
		out[i] = store.Record{Kind: v.Kind, Op: v.Op, Seq: w.next(), Address: v.Address, Value: v.Value}
	}
	return out
}

var errNotAsIndexed = errors.New("a record is no longer where it was")

// reread parses record i again. Its members alias a buffer that the next reread
// through the same window reuses.
func (w *writer) reread(i int32, from *window, o *object) error {
	r := &w.records[i]
	b, err := from.bytes(r.off, int64(r.size))
	if err != nil {
		return err
	}
	if r.flags.has(flagBadUTF8) {
		b = mendUTF8(b)
	}
	if len(b) == 0 || b[0] != '{' {
		return errNotAsIndexed
	}
	if end, syntax := o.parse(b, 0); syntax != nil || end != len(b) {
		return errNotAsIndexed
	}
	return nil
}

// compacted returns value without insignificant white space, behind head and in
// front of tail, in memory of its own.
func compacted(head string, value []byte, tail string) ([]byte, error) {
	dst := make([]byte, 0, len(head)+len(value)+len(tail))
	dst, err := rawjson.Compact(append(dst, head...), value)
	if err != nil {
		return nil, errNotAsIndexed
	}
	return append(dst, tail...), nil
}
