package rewrite

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// DerivedEntry is an entry whose content was made from what is dropped, and that would
// be kept but for that.
type DerivedEntry struct {
	EntryID string
	Type    store.EntryType
}

// Plan is what a rewrite does, decided to the last record.
type Plan struct {
	Kept, Dropped Counts
	Redactions    int // texts that are replaced
	Reparented    int // entries that get another parent
	Paired        int // dropped because their tool call or result is
	Attachments   int // base64 content, which no rule looks into
	Generation    int64
	Derived       []DerivedEntry
	// Structural are matches of the rules in what is never changed (D54).
	Structural []Match
	// Unproven are places where something that must go would stay.
	Unproven []Match
	// Outside are the files, there or not, that messages name as holding all of an
	// output. They are no part of the session.
	Outside []string

	selection *Selection
	cut       *cut
	nextSeq   int64 // of the snapshot that it was made from
}

// Make plans a rewrite of what a snapshot holds; texts shall occur nowhere
// afterwards. The snapshot is read several times and not closed. It fails with
// *store.LaneBusy while an operation is open, with *store.UnknownTarget for an id
// that is not there, with *BadWhere, and with ErrEmptyKey or ErrEndless for rules
// that come to no good.
func Make(ctx context.Context, snap *store.Snapshot, s *Selection, texts []string) (*Plan, error) {
	p := &Plan{Generation: snap.Header.Generation + 1, selection: s, nextSeq: snap.NextSeq}
	var err error
	if p.cut, err = choose(ctx, snap, s); err != nil {
		return nil, err
	}
	if err := p.judge(ctx, snap, NewProof(nil, texts)); err != nil {
		return nil, err
	}
	if p.cut != nil {
		for i, derived := range p.cut.derived {
			if derived {
				n := p.cut.nodes[i]
				p.Derived = append(p.Derived, DerivedEntry{n.ID, n.Type})
			}
		}
	}
	return p, nil
}

// openOperation names the operation of a lane's state, "" when the lane is idle.
// The state of an open one names what it will place.
func openOperation(r *store.Record) string {
	if r.Kind != store.KindValue || r.Address.Namespace != "pi.lane.state" {
		return ""
	}
	id, _ := rawjson.GetString(r.Value, "currentOperationId")
	return id
}

// judge does everything once, to count it and to find what stands against it.
func (p *Plan) judge(ctx context.Context, snap *store.Snapshot, proof *Proof) error {
	t := p.transformer()
	if h := t.header(snap.Header); !proof.Empty() && proof.inHeader(h) {
		p.Unproven = append(p.Unproven, Match{Where: "header"})
	}
	for r, err := range ahead(snap.Records) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if id := openOperation(&r); id != "" {
			return &store.LaneBusy{Lane: r.Address.Key, OperationID: id}
		}
		if r.Entry != nil && message.NamesOutputFile(r.Entry.Payload) {
			if path := r.Entry.Message().OutputFile(); path != "" {
				p.Outside = append(p.Outside, path)
			}
		}
		next, kept := t.record(r)
		if !kept || proof.Empty() || len(p.Unproven) >= maxMatches {
			continue
		}
		if where := proof.inRecord(&next); where != "" {
			p.Unproven = append(p.Unproven, Match{Where: where})
		}
	}
	p.Kept, p.Dropped = t.kept, t.dropped
	p.Redactions, p.Reparented, p.Attachments, p.Structural = t.redactions, t.reparented, t.attachments, t.structural
	if p.cut != nil {
		p.Paired = p.cut.paired
	}
	return t.err
}

func (p *Plan) transformer() *transformer {
	return newTransformer(p.selection.Rules, p.cut, p.selection.DropUsage)
}

// Empty reports whether the plan leaves every record as it is.
func (p *Plan) Empty() bool {
	return p.Dropped == (Counts{}) && p.Redactions == 0 && !p.selection.RemintIDs
}

// Refusal is why the plan may not be carried out, nil when it may: a
// *DerivedContent, a *StructuralMatch or a *NotProven.
func (p *Plan) Refusal() error {
	switch {
	case len(p.Derived) > 0 && (p.selection.Derived == "" || p.selection.Derived == DerivedFail):
		return &DerivedContent{Entries: p.Derived}
	case len(p.Structural) > 0:
		return &StructuralMatch{Matches: p.Structural}
	case len(p.Unproven) > 0:
		return &NotProven{Matches: p.Unproven}
	}
	return nil
}

// errMoved is a session that is not as it was when the plan was made (B14).
var errMoved = errors.New("the session has changed since the plan was made")

// apply is the planned content. The header gets the field of a rewrite's record.
func (p *Plan) apply(old *store.Snapshot, note store.HeaderField) (*store.Snapshot, error) {
	if old.NextSeq != p.nextSeq || old.Header.Generation+1 != p.Generation {
		return nil, errMoved
	}
	next := *old
	next.Outline = nil
	next.Header = p.transformer().header(old.Header)
	next.Header.Extra = noted(next.Header.Extra, note)
	next.Records = ahead(p.records(old))
	return &next, nil
}

func (p *Plan) records(old *store.Snapshot) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		t := p.transformer()
		for r, err := range old.Records {
			kept := true
			if err == nil {
				r, kept = t.record(r)
				err = t.err
			}
			if kept && !yield(r, err) {
				return
			}
		}
	}
}

// DerivedContent refuses to drop what kept content was made from.
type DerivedContent struct{ Entries []DerivedEntry }

func (e *DerivedContent) Error() string {
	return fmt.Sprintf("%d kept entries were made from what would be dropped, the first is %s", len(e.Entries), e.Entries[0].EntryID)
}

// Tag is the refusal's stable name.
func (e *DerivedContent) Tag() string { return "DerivedContent" }

// StructuralMatch refuses rules that match what is never changed.
type StructuralMatch struct{ Matches []Match }

func (e *StructuralMatch) Error() string {
	return fmt.Sprintf("a rule matches where nothing may be changed: %s", someOf(e.Matches))
}

// Tag is the refusal's stable name.
func (e *StructuralMatch) Tag() string { return "StructuralMatch" }

// NotProven refuses a rewrite after which something that must go would stay.
type NotProven struct{ Matches []Match }

func (e *NotProven) Error() string {
	return fmt.Sprintf("a text or id that must go is still there: %s", someOf(e.Matches))
}

// Tag is the refusal's stable name.
func (e *NotProven) Tag() string { return "NotProven" }

// named is how many places an error names.
const named = 5

// someOf names the first places, and counts the rest.
func someOf(all []Match) string {
	var text strings.Builder
	for i, m := range all {
		if i == named {
			fmt.Fprintf(&text, "; and %d other places", len(all)-i)
			break
		}
		if i > 0 {
			text.WriteString("; ")
		}
		text.WriteString(m.String())
	}
	return text.String()
}

// String names the place.
func (m Match) String() string {
	if m.Field == "" {
		return m.Where
	}
	return m.Where + ", " + m.Field
}
