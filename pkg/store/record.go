package store

import (
	"bytes"
	"encoding/json"

	"github.com/drover-run/drover/pkg/message"
)

// EntryType is the structural type of a tree entry (spec §2.1).
type EntryType string

// The entry types. CustomType is set exactly on custom entries.
const (
	TypeMessage       EntryType = "message"
	TypeCompaction    EntryType = "compaction"
	TypeBranchSummary EntryType = "branch_summary"
	TypeCustom        EntryType = "custom"
)

// Structure is an entry's placement without its payload (spec §1.5).
type Structure struct {
	ID         string
	ParentID   string // "" for a root
	Seq        int64
	Timestamp  int64 // Unix ms
	Type       EntryType
	CustomType string
}

// Entry is one immutable, complete record of the conversation tree. Payload is
// the JSON object of every field beyond the structural ones, byte for byte as
// it was committed: {"message":{…}} for a message, {} for a custom entry
// without data (spec §1.1, §2.1).
type Entry struct {
	Structure
	Payload json.RawMessage
}

// NewEntry is an entry before storage gave it a sequence number and a time.
type NewEntry struct {
	ID         string
	ParentID   string // "" for a root
	Type       EntryType
	CustomType string
	Payload    json.RawMessage // a JSON object; nil means {}
}

// UsageRow is one line of the append-only cost ledger (spec §1.6).
type UsageRow struct {
	ID         string
	Seq        int64
	EntryID    string // "" when the cost belongs to no entry
	Adjustment bool   // true: a caller's reconciliation, not a provider's report
	Usage      json.RawMessage
	Details    json.RawMessage // nil when absent
}

// NewUsage is a usage row before storage gave it a sequence number.
type NewUsage struct {
	ID         string
	EntryID    string
	Adjustment bool
	Usage      message.Usage
	// RawUsage replaces Usage when set, so that fields this binary does not know
	// survive.
	RawUsage json.RawMessage
	Details  json.RawMessage
}

// StoredValue is the current content of one value address.
type StoredValue struct {
	Address
	Seq   int64 // of the write that last set it
	Value json.RawMessage
}

// ListElement is one element of a list.
type ListElement struct {
	Seq   int64
	Value json.RawMessage
}

// Record is one committed, sequenced write: what a backend stores, what a
// snapshot yields, one element of a JSONL line. Exactly the fields of its kind
// are set.
type Record struct {
	Kind    WriteKind
	Op      WriteOp // of values and lists
	Seq     int64
	Address Address         // values and lists
	Value   json.RawMessage // a set value, an appended element
	Entry   *Entry
	Usage   *UsageRow
	// Verdict stands in for the payloads of an entry or a ledger row that have
	// been judged sound; only a judged snapshot has it.
	Verdict *Verdict
}

// Name is what a message calls the record: its kind and id, or its address.
func (r *Record) Name() string {
	switch r.Kind {
	case KindEntry:
		return "entry " + r.Entry.ID
	case KindUsage:
		return "usage " + r.Usage.ID
	}
	return r.Address.String()
}

// Detach makes the record's payloads its own.
func (r *Record) Detach() {
	r.Value = bytes.Clone(r.Value)
	if r.Entry != nil {
		r.Entry.Payload = bytes.Clone(r.Entry.Payload)
	}
	if r.Usage != nil {
		r.Usage.Usage, r.Usage.Details = bytes.Clone(r.Usage.Usage), bytes.Clone(r.Usage.Details)
	}
}

// Stats is the maintained projection over entries and ledger: message entries
// counted, usage rows summed left to right (spec §1.6).
type Stats struct {
	MessageCount int64
	Usage        message.Usage
}

// Add counts one committed record. A usage row whose numbers cannot be read
// adds nothing; verify reports it.
func (s Stats) Add(r Record) Stats {
	switch {
	case r.Entry != nil && r.Entry.Type == TypeMessage:
		s.MessageCount++
	case r.Usage != nil:
		if u, err := message.ParseUsage(r.Usage.Usage); err == nil {
			s.Usage = s.Usage.Add(u)
		}
	}
	return s
}
