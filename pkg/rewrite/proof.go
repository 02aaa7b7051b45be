package rewrite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/drover-run/drover/pkg/store"
)

// Proof is what must occur nowhere any more: the literals of the rules and other
// texts in every spelling, the patterns in decoded texts, the ids of dropped
// entries (D53). What it finds it names by the place, never by the text.
type Proof struct {
	literals []*literal
	rules    *Rules
	ids      map[string]struct{}

	// indirect tells that a file had bytes that do not show by themselves what they
	// say.
	indirect bool
}

// NewProof collects the texts of rules, which may be nil, and others, none of
// which is empty.
func NewProof(rules *Rules, texts []string) *Proof {
	p := &Proof{rules: rules, ids: make(map[string]struct{})}
	if rules != nil {
		for _, r := range rules.rules {
			if r.literal != nil {
				p.literals = append(p.literals, r.literal)
			}
		}
	}
	for _, text := range texts {
		p.literals = append(p.literals, newLiteral(text))
	}
	return p
}

// Gone adds the ids of the entries that a plan drops. One that is no UUID may be
// any word, and is not searched for.
func (p *Proof) Gone(plan *Plan) {
	if plan.cut == nil {
		return
	}
	for i, gone := range plan.cut.drop {
		if id := plan.cut.nodes[i].ID; gone && isUUID([]byte(id)) {
			p.ids[id] = struct{}{}
		}
	}
}

// Texts are the literal texts that must have gone.
func (p *Proof) Texts() []string {
	var texts []string
	for _, l := range p.literals {
		texts = append(texts, string(l.plain))
	}
	return texts
}

// Extent counts what a proof is about.
type Extent struct{ Texts, Patterns, EntryIDs int }

// Extent tells how much must have gone, and nothing of what.
func (p *Proof) Extent() Extent {
	e := Extent{Texts: len(p.literals), EntryIDs: len(p.ids)}
	if p.rules != nil {
		for _, r := range p.rules.rules {
			if r.pattern != nil {
				e.Patterns++
			}
		}
	}
	return e
}

// Empty reports whether there is nothing to prove.
func (p *Proof) Empty() bool { return len(p.literals)+len(p.ids) == 0 && p.rules.Empty() }

// literal reports whether nothing of it is a pattern.
func (p *Proof) literal() bool { return p.rules == nil || !p.rules.patterns }

// Text reports whether a decoded text holds what must have gone.
func (p *Proof) Text(text string) bool {
	b := []byte(text)
	return p.inBytes(b, false) >= 0 || p.rules.inText(b)
}

// inBytes returns where something that must have gone occurs first, -1 when
// nothing does. Patterns are not looked for.
func (p *Proof) inBytes(b []byte, raw bool) int {
	first := -1
	for _, l := range p.literals {
		if at, _ := l.find(b, raw); at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	if at := p.idIn(b); at >= 0 && (first < 0 || at < first) {
		first = at
	}
	return first
}

// idIn finds the id of a dropped entry.
func (p *Proof) idIn(b []byte) int {
	if len(p.ids) == 0 {
		return -1
	}
	const dash = 8 // where the first hyphen stands
	for at := dash; at+idLength-dash <= len(b); at++ {
		i := bytes.IndexByte(b[at:len(b)-(idLength-dash)+1], '-')
		if i < 0 {
			return -1
		}
		at += i
		id := b[at-dash : at-dash+idLength]
		if !isUUID(id) {
			continue
		}
		if _, gone := p.ids[string(id)]; gone {
			return at - dash
		}
	}
	return -1
}

// idLength is that of a UUID in its one spelling.
const idLength = 36

func isUUID(id []byte) bool {
	return len(id) == idLength && id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-'
}

// Files searches files byte for byte; one that is gone is passed over.
func (p *Proof) Files(ctx context.Context, paths ...string) ([]Match, error) {
	var found []Match
	for _, path := range paths {
		at, err := p.file(ctx, path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if at >= 0 {
			found = append(found, Match{Where: fmt.Sprintf("%s, byte %d", path, at)})
		}
	}
	return found, nil
}

// chunk is how much of a file is searched at a time.
const chunk = 4 << 20

func (p *Proof) file(ctx context.Context, path string) (at int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return -1, err
	}
	defer f.Close()
	overlap := p.overlap()
	buf := make([]byte, 0, chunk+2*overlap)
	for offset := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return -1, err
		}
		n, err := io.ReadFull(f, buf[len(buf):len(buf)+chunk])
		buf = buf[:len(buf)+n]
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return -1, err
		}
		p.indirect = p.indirect || roundabout(buf)
		if i := p.inBytes(buf, true); i >= 0 {
			return offset + int64(i), nil
		}
		if ended {
			return -1, nil
		}
		rest := tail(buf, overlap)
		offset += int64(len(buf) - len(rest))
		buf = append(buf[:0], rest...)
	}
}

// overlap is how much the chunks have in common: more than an occurrence takes,
// whose every character may be escaped behind several backslashes.
func (p *Proof) overlap() int {
	n := 4 << 10
	for _, l := range p.literals {
		n = max(n, 24*len(l.plain))
	}
	return n
}

// tail is the end of b, of n bytes or a few more: it does not begin in the middle
// of an escape.
func tail(b []byte, n int) []byte {
	const escape = len(`\u0000`)
	at := max(0, len(b)-n)
	for at > escape && len(b)-at < 2*n && bytes.IndexByte(b[at-escape:at], '\\') >= 0 {
		at--
	}
	return b[at:]
}

// Records searches what a session says, decoded.
func (p *Proof) Records(ctx context.Context, q store.Queries) ([]Match, error) {
	snap, err := q.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	found, err := p.records(ctx, snap)
	return found, errors.Join(err, snap.Close())
}

func (p *Proof) records(ctx context.Context, snap *store.Snapshot) ([]Match, error) {
	var found []Match
	for r, err := range snap.Records {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		if where := p.inRecord(&r); where != "" && len(found) < maxMatches {
			found = append(found, Match{Where: where})
		}
	}
	if p.inHeader(snap.Header) {
		found = append(found, Match{Where: "header"})
	}
	return found, nil
}

// inHeader looks at a header that was read from a store, and so can be written.
func (p *Proof) inHeader(h store.Header) bool {
	raw, err := h.AppendJSON(nil)
	return err == nil && p.inJSON(raw)
}

// inRecord names a record that holds what must have gone, "" when it does not.
func (p *Proof) inRecord(r *store.Record) string {
	switch {
	case r.Entry != nil:
		if p.Text(r.Entry.ID) || p.Text(r.Entry.ParentID) || p.Text(r.Entry.CustomType) || p.inJSON(r.Entry.Payload) {
			return "entry " + r.Entry.ID
		}
	case r.Usage != nil:
		if p.Text(r.Usage.ID) || p.Text(r.Usage.EntryID) || p.inJSON(r.Usage.Usage) || p.inJSON(r.Usage.Details) {
			return "usage row " + r.Usage.ID
		}
	default:
		if p.Text(r.Address.Namespace) || p.Text(r.Address.Key) || p.inJSON(r.Value) {
			return r.Address.String()
		}
	}
	return ""
}

func (p *Proof) inJSON(raw []byte) bool {
	if p.inBytes(raw, true) >= 0 {
		return true
	}
	found := false
	if indirect := roundabout(raw); indirect || !p.literal() {
		eachText(raw, func(text []byte) bool {
			found = p.rules.inText(text) || indirect && p.inBytes(text, false) >= 0 ||
				roundabout(text) && p.inJSON(bytes.Clone(text))
			return !found
		})
	}
	return found
}
