package rewrite

import (
	"context"
	"errors"
	"fmt"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
)

// Rewrite is a plan and what has to hold when it has been carried out.
type Rewrite struct {
	Plan *Plan
	// Proof is what must have gone. The ids of dropped entries are part of it.
	Proof *Proof
	// Checks are the parts of the verification that other packages know.
	Checks []store.Check
	// Before, if set, is called right before the swap, when the old store is
	// complete in its file. Its error keeps the old store.
	Before func(ctx context.Context) error

	At     int64 // Unix ms
	Reason string
}

// Unsound is a store that does not stand its verification.
type Unsound struct{ Problem store.Problem }

func (e *Unsound) Error() string {
	return fmt.Sprintf("the session is damaged: %s (%s)", e.Problem.Message, e.Problem.Where)
}

// Execute carries the plan out on the session that it was made from: the new
// store is built, verified and proven before it takes the place of the old one
// (D51, D53). An error before the swap keeps the old store: *Unsound, *NotProven,
// or what the exchange fails with.
func (r *Rewrite) Execute(ctx context.Context, s *store.Session) error {
	return s.Exchange(ctx, store.Exchange{
		Next: func(old *store.Snapshot) (*store.Snapshot, error) { return r.Plan.apply(old, r.note()) },
		Judge: func(ctx context.Context, path string, next store.Reader) error {
			if err := r.prove(ctx, next, path); err != nil || r.Before == nil {
				return err
			}
			return r.Before(ctx)
		},
	})
}

// prove verifies a store, and searches what it says and its file for what must
// have gone. It fails with *Unsound or *NotProven.
func (r *Rewrite) prove(ctx context.Context, q store.Reader, path string) error {
	type result struct {
		found []Match
		err   error
	}
	searched := make(chan result, 1)
	go func() {
		var res result
		if !r.Proof.Empty() {
			res.found, res.err = r.Proof.Files(ctx, path)
		}
		searched <- res
	}()
	said, unsound := r.read(ctx, q)
	lies := <-searched
	// A record is a better name than a byte.
	if unsound == nil && len(said) == 0 && (len(lies.found) > 0 || r.Proof.indirect) {
		said, unsound = r.Proof.Records(ctx, q)
	}
	found := append(said, lies.found...)
	switch {
	case unsound != nil:
		return unsound
	case lies.err != nil:
		return lies.err
	case len(found) > 0:
		return &NotProven{Matches: found}
	}
	return nil
}

// read verifies a store, and looks at every record for what must have gone, unless
// that is in the bytes of the file or nowhere.
func (r *Rewrite) read(ctx context.Context, q store.Reader) (found []Match, err error) {
	if _, textual := q.(store.Textual); r.Proof.Empty() || textual && r.Proof.literal() {
		return nil, r.verify(ctx, q, nil)
	}
	if r.Proof.inHeader(q.Header()) {
		found = append(found, Match{Where: "header"})
	}
	err = r.verify(ctx, q, func(rec *store.Record) {
		if where := r.Proof.inRecord(rec); where != "" && len(found) < maxMatches {
			found = append(found, Match{Where: where})
		}
	})
	return found, err
}

// Verify checks every invariant of a store. It fails with *Unsound.
func (r *Rewrite) Verify(ctx context.Context, q store.Reader) error { return r.verify(ctx, q, nil) }

func (r *Rewrite) verify(ctx context.Context, q store.Reader, seen func(*store.Record)) error {
	v := store.Verification{Checks: r.Checks, Seen: seen}
	for p := range v.Problems(ctx, q) {
		if p.Severity == store.SeverityError {
			return errors.Join(ctx.Err(), &Unsound{Problem: p})
		}
	}
	return ctx.Err()
}

// note is what the header records of a rewrite: when, why, how much, never what (D54).
func (r *Rewrite) note() store.HeaderField {
	p := r.Plan
	b := append([]byte(nil), `{"generation":`...)
	b = rawjson.AppendInt(b, p.Generation)
	b = rawjson.AppendInt(append(b, `,"at":`...), r.At)
	if r.Reason != "" {
		b = rawjson.AppendQuote(append(b, `,"reason":`...), r.Reason)
	}
	for _, n := range []struct {
		key string
		n   int64
	}{
		{`,"entries":`, p.Dropped.Entries}, {`,"usage":`, p.Dropped.Usage}, {`,"values":`, p.Dropped.Values},
		{`,"redactions":`, int64(p.Redactions)}, {`,"reparented":`, int64(p.Reparented)},
	} {
		b = rawjson.AppendInt(append(b, n.key...), n.n)
	}
	return store.HeaderField{Key: []byte(store.RewritesKey), Value: append(b, '}')}
}

// noted is a header's unknown fields with one more record of a rewrite.
func noted(fields []store.HeaderField, note store.HeaderField) []store.HeaderField {
	all := []byte{'['}
	var out []store.HeaderField
	for _, f := range fields {
		if string(f.Key) != store.RewritesKey {
			out = append(out, f)
			continue
		}
		if rawjson.KindOf(f.Value) == rawjson.Array && len(f.Value) > 2 {
			all = append(append(all, f.Value[1:len(f.Value)-1]...), ',')
		}
	}
	note.Value = append(append(all, note.Value...), ']')
	return append(out, note)
}
