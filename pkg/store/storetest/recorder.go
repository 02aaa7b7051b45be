package storetest

import (
	"context"
	"strings"
	"sync"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
)

// Committed is one transaction that a Recorder saw succeed.
type Committed struct {
	Tx     store.Tx
	Result store.CommitResult
}

// Recorder is a Backend that remembers every transaction that was committed, in
// order (spec §9.3).
type Recorder struct {
	store.Backend

	mu   sync.Mutex
	seen []Committed
}

// NewRecorder records the commits of b.
func NewRecorder(b store.Backend) *Recorder { return &Recorder{Backend: b} }

// Commit passes the transaction on and records it when it succeeds.
func (r *Recorder) Commit(ctx context.Context, tx store.Tx) (store.CommitResult, error) {
	res, err := r.Backend.Commit(ctx, tx)
	if err == nil {
		r.mu.Lock()
		r.seen = append(r.seen, Committed{tx, res})
		r.mu.Unlock()
	}
	return res, err
}

// Committed returns the transactions so far.
func (r *Recorder) Committed() []Committed {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Committed(nil), r.seen...)
}

// Reset forgets the transactions so far.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = nil
}

// String writes every recorded transaction on its own line.
func (r *Recorder) String() string {
	var s strings.Builder
	for _, c := range r.Committed() {
		s.WriteString(TxString(c.Tx))
		s.WriteByte('\n')
	}
	return s.String()
}

// TxString writes a transaction in the specification's notation (spec §2.2):
//
//	TX[ insert entry e1 (message), upsert pi.lane.leaf/main = "e1" ]
func TxString(tx store.Tx) string {
	if len(tx) == 0 {
		return "TX[ ]"
	}
	var s strings.Builder
	s.WriteString("TX[ ")
	for i, w := range tx {
		if i > 0 {
			s.WriteString(", ")
		}
		s.WriteString(writeString(w))
	}
	s.WriteString(" ]")
	return s.String()
}

func writeString(w store.Write) string {
	switch {
	case w.Kind == store.KindEntry:
		return entryString(w.Entry)
	case w.Kind == store.KindUsage:
		return usageString(w.Usage)
	case w.Op == store.OpSet:
		return "upsert " + w.Address.String() + " = " + compacted(w.Value)
	case w.Op == store.OpAppend:
		return "append " + w.Address.String() + " += " + compacted(w.Value)
	case w.Kind == store.KindList:
		return "delete list " + w.Address.String()
	}
	return "delete " + w.Address.String()
}

func entryString(e *store.NewEntry) string {
	s := "insert entry " + e.ID + " (" + string(e.Type)
	if e.CustomType != "" {
		s += " " + e.CustomType
	}
	s += ")"
	if e.ParentID != "" {
		s += " under " + e.ParentID
	}
	return s
}

func usageString(u *store.NewUsage) string {
	s := "insert usage " + u.ID
	if u.EntryID != "" {
		s += " of " + u.EntryID
	}
	if u.Adjustment {
		s += " (adjustment)"
	}
	return s
}

func compacted(b []byte) string {
	c, err := rawjson.Compact(nil, b)
	if err != nil {
		return string(b)
	}
	return string(c)
}
