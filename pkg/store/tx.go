package store

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
)

// WriteKind says which of the three stores a write concerns.
type WriteKind uint8

// The kinds of write (spec §1.4).
const (
	KindEntry WriteKind = iota + 1
	KindUsage
	KindValue
	KindList
)

// WriteOp says what a value or list write does.
type WriteOp uint8

// The operations on values (set, delete) and lists (append, delete).
const (
	OpSet WriteOp = iota + 1
	OpDelete
	OpAppend
)

// MaxPayload is the size in bytes above which one payload is refused.
const MaxPayload = 256 << 20

// Write is one asked-for change. Make values and lists through their typed
// addresses, entries and usage through InsertEntry and InsertUsage.
type Write struct {
	Kind    WriteKind
	Op      WriteOp
	Address Address
	Value   json.RawMessage
	Entry   *NewEntry // of KindEntry
	Usage   *NewUsage // of KindUsage

	err error // why it could not be encoded; commit reports it
}

// Tx is a transaction: its writes apply in order, all or none (spec §1.4).
type Tx []Write

// InsertEntry is the write that places a complete entry.
func InsertEntry(e NewEntry) Write { return Write{Kind: KindEntry, Entry: &e} }

// InsertUsage is the write that adds a ledger row.
func InsertUsage(u NewUsage) Write { return Write{Kind: KindUsage, Usage: &u} }

// CommitResult describes one committed transaction (spec §1.4, D11).
type CommitResult struct {
	FirstSeq  int64
	Seqs      []int64 // one per write, in order
	Timestamp int64   // Unix ms, of every entry in it
	Stats     Stats   // after it
}

// IDKind says what an id is taken by.
type IDKind uint8

// What an id may name: nothing yet, an entry, or a usage row.
const (
	IDFree IDKind = iota
	IDEntry
	IDUsage
)

// Base is what a backend knows when it admits a transaction.
type Base struct {
	NextSeq int64 // the first sequence number to give
	Newest  int64 // the newest timestamp given so far, Unix ms
	Now     int64 // Unix ms
	// Lookup says what an id already names in the store.
	Lookup func(id string) (IDKind, error)
	// Scratch, when set, lends its memory to the records.
	Scratch *Scratch
}

// Scratch is memory for the records of one transaction after another. Records
// that Prepare made with it, and the values and list elements in them, hold until
// it is used again: who keeps one copies it. The zero value is ready.
type Scratch struct {
	records []Record
	values  []byte
}

// scratchBytes is how much of a transaction's values a Scratch holds: a few of
// the engine's.
const scratchBytes = 16 << 10

// take gives n zero records and room for values; a nil Scratch has none.
func (s *Scratch) take(n int) ([]Record, []byte) {
	if s == nil {
		return make([]Record, n), nil
	}
	clear(s.records) // what the last transaction held may go
	if cap(s.records) < n {
		s.records = make([]Record, n)
	}
	s.records = s.records[:n]
	if s.values == nil {
		s.values = make([]byte, 0, scratchBytes)
	}
	return s.records, s.values
}

// Prepare checks, encodes and numbers a whole transaction before anything
// changes: ids free, parents present, payloads well-formed and free of
// insignificant white space (D5), the time never falling (D6). It returns the
// records in write order. Payloads without white space to leave out are the
// caller's own bytes, as one can be a whole answer (D41): who keeps such a record
// beyond the commit clones them (Record.Detach). A refusal is an *InvalidWrite, and
// nothing of the transaction may then be applied (spec §1.4); a failed look-up is
// returned as it is. A session whose numbers are used up, which no number of commits
// brings about, is *Corrupt.
func Prepare(tx Tx, base Base) ([]Record, CommitResult, error) {
	if base.NextSeq > math.MaxInt64-int64(len(tx)) {
		return nil, CommitResult{}, &Corrupt{Offset: -1, Msg: fmt.Sprintf("there are no sequence numbers after %d", base.NextSeq-1)}
	}
	p := preparer{base: base, stamp: max(base.Now, base.Newest), seq: base.NextSeq}
	var records []Record
	records, p.values = base.Scratch.take(len(tx))
	seqs := make([]int64, len(tx))
	for i := range tx {
		if err := p.write(&tx[i], &records[i]); err != nil {
			if p.broken != nil {
				return nil, CommitResult{}, p.broken
			}
			return nil, CommitResult{}, &InvalidWrite{Index: i, Err: err}
		}
		records[i].Seq = p.seq
		seqs[i] = p.seq
		p.seq++
	}
	return records, CommitResult{FirstSeq: base.NextSeq, Seqs: seqs, Timestamp: p.stamp}, nil
}

type preparer struct {
	base   Base
	stamp  int64
	seq    int64
	ids    map[string]IDKind // taken by this transaction
	values []byte            // lent: values go behind its length, up to its capacity

	broken error // what made a look-up fail: no fault of the transaction
}

func (p *preparer) write(w *Write, r *Record) error {
	if w.err != nil {
		return w.err
	}
	r.Kind, r.Op = w.Kind, w.Op
	switch w.Kind {
	case KindEntry:
		return p.entry(w.Entry, r)
	case KindUsage:
		return p.usage(w.Usage, r)
	default:
		return p.addressed(w, r)
	}
}

func (p *preparer) entry(e *NewEntry, r *Record) error {
	if err := checkShape(e); err != nil {
		return err
	}
	if e.ParentID != "" {
		kind, err := p.lookup(e.ParentID)
		if err != nil {
			return err
		}
		if kind != IDEntry {
			return fmt.Errorf("entry %s: parent %s is no entry", e.ID, e.ParentID)
		}
	}
	payload, err := payloadObject(e.Payload)
	if err == nil {
		err = checkMembers(payload)
	}
	if err != nil {
		return fmt.Errorf("entry %s: %w", e.ID, err)
	}
	if err := p.take(e.ID, IDEntry); err != nil {
		return err
	}
	r.Entry = &Entry{
		Structure: Structure{ID: e.ID, ParentID: e.ParentID, Seq: p.seq, Timestamp: p.stamp, Type: e.Type, CustomType: e.CustomType},
		Payload:   payload,
	}
	return nil
}

// checkMembers refuses a payload that claims one of the entry's structural fields:
// a stored entry has both in one object, and one of the two would be lost to
// whoever reads it.
func checkMembers(payload json.RawMessage) (err error) {
	walked := rawjson.MembersFunc(payload, func(m rawjson.Member) bool {
		var name string
		if name, err = rawjson.Unquote(m.Key); err == nil && structuralField(name) {
			err = &StructuralMember{Name: name}
		}
		return err == nil
	})
	if err == nil {
		err = walked
	}
	return err
}

// structuralField reports a name that belongs to the placement of an entry (spec
// §2.1) in one of its forms.
func structuralField(name string) bool {
	switch name {
	case "kind", "id", "parentId", "seq", "timestamp", "type", "customType":
		return true
	}
	return false
}

// checkShape holds the rules that storage enforces on entries: customType
// exactly on custom entries, and no assistant answer that is still pending.
func checkShape(e *NewEntry) error {
	switch {
	case e == nil || e.ID == "":
		return fmt.Errorf("entry has no id")
	case !isText(e.ID) || !isText(e.CustomType):
		return fmt.Errorf("entry %q: id or customType is no text", e.ID)
	case (e.Type == TypeCustom) != (e.CustomType != ""):
		return fmt.Errorf("entry %s: customType belongs to custom entries, all of them and no other", e.ID)
	case e.Type == TypeMessage:
		raw, ok := rawjson.Get(e.Payload, "message")
		if !ok {
			return fmt.Errorf("entry %s: message entry has no message", e.ID)
		}
		m := message.Message(raw)
		if m.Role() == message.RoleAssistant && m.StopReason() == message.StopPending {
			return fmt.Errorf("entry %s: assistant message is still pending", e.ID)
		}
	}
	return nil
}

func payloadObject(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		return json.RawMessage("{}"), nil
	}
	if rawjson.KindOf(raw) != rawjson.Object {
		return nil, fmt.Errorf("payload is no JSON object")
	}
	return compact(raw)
}

func compact(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) > MaxPayload {
		return nil, &TooLarge{Size: int64(len(raw))}
	}
	return rawjson.Compacted(raw)
}

func (p *preparer) usage(u *NewUsage, r *Record) error {
	if u == nil || u.ID == "" {
		return fmt.Errorf("usage row has no id")
	}
	if !isText(u.ID) || !isText(u.EntryID) {
		return fmt.Errorf("usage row %q: id or entryId is no text", u.ID)
	}
	usage := u.RawUsage
	if usage == nil {
		b, err := u.Usage.AppendJSON(nil)
		if err != nil {
			return fmt.Errorf("usage row %s: %w", u.ID, err)
		}
		usage = b
	} else {
		b, err := payloadObject(usage)
		if err != nil {
			return fmt.Errorf("usage row %s: %w", u.ID, err)
		}
		usage = b
	}
	var details json.RawMessage
	if u.Details != nil {
		b, err := compact(u.Details)
		if err != nil {
			return fmt.Errorf("usage row %s details: %w", u.ID, err)
		}
		details = b
	}
	if err := p.take(u.ID, IDUsage); err != nil {
		return err
	}
	r.Usage = &UsageRow{ID: u.ID, Seq: p.seq, EntryID: u.EntryID, Adjustment: u.Adjustment, Usage: usage, Details: details}
	return nil
}

func (p *preparer) addressed(w *Write, r *Record) error {
	if err := w.Address.Check(); err != nil {
		return err
	}
	r.Address = w.Address
	if w.Op == OpDelete {
		return nil
	}
	var err error
	if room := len(p.values); len(w.Value) <= cap(p.values)-room {
		p.values, err = rawjson.Compact(p.values, w.Value)
		r.Value = p.values[room:len(p.values):len(p.values)]
	} else {
		r.Value, err = compact(w.Value)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", w.Address, err)
	}
	return nil
}

func (p *preparer) lookup(id string) (IDKind, error) {
	if kind, ok := p.ids[id]; ok {
		return kind, nil
	}
	kind, err := p.base.Lookup(id)
	if err != nil {
		p.broken = fmt.Errorf("look up id %s: %w", id, err)
	}
	return kind, err
}

func (p *preparer) take(id string, as IDKind) error {
	kind, err := p.lookup(id)
	if err != nil {
		return err
	}
	if kind != IDFree {
		return fmt.Errorf("id %s is already taken", id)
	}
	if p.ids == nil {
		p.ids = make(map[string]IDKind)
	}
	p.ids[id] = as
	return nil
}
