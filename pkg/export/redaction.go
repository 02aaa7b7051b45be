package export

import (
	"context"
	"fmt"
	"slices"
)

// StructuralMatch refuses an export: what shall not go out stands in an id, a
// name or a signature, which is never changed (D54).
type StructuralMatch struct {
	Matches []Match // the first of them
	More    int     // how many others there are
}

// Match is a member of an entry, or a value.
type Match struct {
	EntryID string // "" for a value
	Field   string // the member's name, the value's address
}

// maxMatches is how many structural matches are named.
const maxMatches = 100

func (e *StructuralMatch) add(id string, fields ...string) {
	for _, f := range fields {
		if len(e.Matches) == maxMatches {
			e.More++
			continue
		}
		e.Matches = append(e.Matches, Match{id, f})
	}
}

// orNil is the refusal, nil when nothing matches.
func (e *StructuralMatch) orNil() error {
	if len(e.Matches) == 0 {
		return nil
	}
	return e
}

func (e *StructuralMatch) Error() string {
	first := e.Matches[0].Field
	if id := e.Matches[0].EntryID; id != "" {
		first += " of entry " + id
	}
	return fmt.Sprintf("the redaction file matches %d structural string(s), which are never changed; the first is %s", len(e.Matches)+e.More, first)
}

// EmptyKey refuses an export: nothing would be left of an object's key.
type EmptyKey struct{ Where string }

func (e *EmptyKey) Error() string {
	return "the redaction file leaves nothing of an object key in " + e.Where + ": give it a replacement that is not empty"
}

// checkRedaction looks at all that goes out before anything is written.
func (s *Source) checkRedaction(ctx context.Context) error {
	if s.o.Redact == nil {
		return nil
	}
	found := &StructuralMatch{}
	for _, name := range s.structure() {
		if s.o.Redact.Matches(name.text) {
			found.add("", name.what)
		}
	}
	next := int32(0)
	for r, err := range s.snap.Records {
		switch {
		case err != nil:
			return fmt.Errorf("read session: %w", err)
		case r.Entry == nil:
			continue
		case next%256 == 0 && ctx.Err() != nil:
			return context.Cause(ctx)
		}
		at := next
		if next++; !s.wanted(at) {
			continue
		}
		e := r.Entry
		if s.o.Redact.Matches(e.CustomType) {
			found.add(e.ID, "customType")
		}
		if s.o.Redact.Matches(e.ID) {
			found.add(e.ID, "id")
		}
		result := s.o.Redact.Entry(e.Payload)
		if result.EmptyKeys > 0 {
			return &EmptyKey{Where: "entry " + e.ID}
		}
		found.add(e.ID, result.Structural...)
	}
	return found.orNil()
}

// named is a structural string that belongs to no entry.
type named struct{ what, text string }

// structure are the structural strings beside the entries that any form shows.
func (s *Source) structure() []named {
	all := []named{
		{"id of the session", s.header.ID},
		{"id of the parent session", s.header.ParentSessionID},
		{"legacy id of the session", s.header.LegacySessionID},
	}
	for _, l := range s.Lanes() {
		all = append(all, named{"name of lane " + l.Lane, l.Lane})
	}
	if c := s.config; c != nil {
		all = append(all, named{"model of lane " + s.o.Lane, c.Model.String()})
	}
	return all
}

// redactHeader takes what the header tells of the machine it comes from.
func (s *Source) redactHeader() {
	r := s.o.Redact
	if r == nil {
		return
	}
	h := &s.header
	h.CWD, _ = r.Text(h.CWD)
	h.LegacyParentSessionPath, _ = r.Text(h.LegacyParentSessionPath)
	h.Source = r.Content(h.Source).JSON
	h.Spawn = r.Content(h.Spawn).JSON
	h.Extra = slices.Clone(h.Extra)
	for i := range h.Extra {
		h.Extra[i].Value = r.Content(h.Extra[i].Value).JSON
	}
}
