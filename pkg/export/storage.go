package export

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/internal/redact"
	"github.com/drover-run/drover/pkg/store"
)

// OpenOperation refuses a redacted export of the storage: what an operation keeps while
// it is open cannot be told apart into text and structure.
type OpenOperation struct{ Lane string }

func (e *OpenOperation) Error() string {
	return fmt.Sprintf("lane %s has an open operation, whose state cannot be redacted: drive it to its end first", e.Lane)
}

// Busy names a lane with an open operation, "" when all are idle.
func (s *Source) Busy() string { return s.busy }

// Snapshot is the whole session as its storage holds it, whatever the lane,
// redacted. When it has to redact, it fails with *OpenOperation while an operation is open
// and with *StructuralMatch when an address or a value of the format's own
// matches. Closing it closes the source.
func (s *Source) Snapshot() (*store.Snapshot, error) {
	snap := *s.snap
	snap.Header, snap.Outline = s.header, nil
	r := s.o.Redact
	if r == nil {
		snap.Records = wellFormed(s.snap.Records)
		return &snap, nil
	}
	if s.busy != "" {
		return nil, &OpenOperation{Lane: s.busy}
	}
	if err := s.checkValues(r); err != nil {
		return nil, err
	}
	snap.Records = func(yield func(store.Record, error) bool) {
		for rec, err := range wellFormed(s.snap.Records) {
			if err == nil && !redactRecord(r, &rec) {
				continue
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
	return &snap, nil
}

// wellFormed ends with *store.Corrupt at a payload that is no JSON: what is written is
// read by others.
func wellFormed(records iter.Seq2[store.Record, error]) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for rec, err := range records {
			if err == nil {
				err = checkJSON(&rec)
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

func checkJSON(rec *store.Record) error {
	var texts [2]json.RawMessage
	switch {
	case rec.Entry != nil:
		texts[0] = rec.Entry.Payload
	case rec.Usage != nil:
		texts = [2]json.RawMessage{rec.Usage.Usage, rec.Usage.Details}
	default:
		texts[0] = rec.Value
	}
	for _, text := range texts {
		if text == nil {
			continue
		}
		if err := rawjson.Valid(text); err != nil {
			return &store.Corrupt{Offset: -1, Msg: fmt.Sprintf("%s is no JSON: %v", rec.Name(), err)}
		}
	}
	return nil
}

// checkValues looks at what stands beside the tree.
func (s *Source) checkValues(r *redact.Rules) error {
	found := &StructuralMatch{}
	for rec, err := range s.snap.Records {
		if err != nil {
			return fmt.Errorf("read session: %w", err)
		}
		if u := rec.Usage; u != nil && r.Content(u.Details).EmptyKeys > 0 {
			return &EmptyKey{Where: "usage row " + u.ID}
		}
		if rec.Kind != store.KindValue && rec.Kind != store.KindList {
			continue
		}
		a := rec.Address
		switch result := r.Content(rec.Value); {
		case r.Matches(a.Namespace) || r.Matches(a.Key):
			found.add("", a.String())
		case structural(a) && result.Count > 0:
			found.add("", a.String())
		case !structural(a) && result.EmptyKeys > 0:
			return &EmptyKey{Where: a.String()}
		}
	}
	return found.orNil()
}

// redactRecord replaces in a copy of what the record holds. False leaves the
// record out: the outcome of a lane's last operation, which nothing reads, is
// told in words that nobody can take apart.
func redactRecord(r *redact.Rules, rec *store.Record) bool {
	switch {
	case rec.Entry != nil:
		e := *rec.Entry
		e.Payload = r.Entry(e.Payload).JSON
		rec.Entry = &e
	case rec.Usage != nil:
		u := *rec.Usage
		u.Usage = r.Content(u.Usage).JSON
		u.Details = r.Content(u.Details).JSON
		rec.Usage = &u
	case rec.Address.Namespace == lastResult:
		return r.Content(rec.Value).Count == 0
	case rec.Address.Namespace == store.PendingEntries().Address().Namespace:
		rec.Value = redactPending(r, rec.Value)
	case !structural(rec.Address):
		rec.Value = r.Content(rec.Value).JSON
	}
	return true
}

// redactPending replaces in content that waits for its place.
func redactPending(r *redact.Rules, value json.RawMessage) json.RawMessage {
	payload, ok := rawjson.Get(value, "payload")
	if !ok {
		return value
	}
	result := r.Content(payload)
	if typ, _ := rawjson.GetString(value, "type"); typ == string(store.TypeMessage) {
		result = r.Message(payload)
	}
	if result.Count == 0 {
		return value
	}
	out, err := rawjson.Set(value, "payload", result.JSON)
	if err != nil { // not for a value that has been read
		return value
	}
	return out
}

const lastResult = "pi.lane.lastResult"

// structural tells whether an address holds what the format itself needs.
func structural(a store.Address) bool {
	switch a.Namespace {
	case lastResult, store.SessionName().Address().Namespace,
		store.EntryLabels().Address().Namespace, store.PendingEntries().Address().Namespace:
		return false
	}
	return a.Reserved()
}
