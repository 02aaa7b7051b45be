package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Severity tells damage from what is only odd.
type Severity string

// An error breaks an invariant of spec §9.1; a warning breaks none, but nothing
// that drover writes looks like it.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Problem is one finding of Verify. Code is stable and for scripts, Where names
// the entry, row, lane, address or line.
type Problem struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
	Where    string   `json:"where"`
}

// Check is a part of Verify that another package knows how to do, such as the
// ownership of operation values.
type Check func(ctx context.Context, r Reader) iter.Seq[Problem]

// Checker is implemented by readers that can check their own encoding: framing,
// indexes, leftovers (D7).
type Checker interface {
	Problems(ctx context.Context) iter.Seq[Problem]
}

// Verify checks a session against the storage and tree invariants of spec §9.1:
// ids, sequence numbers, parents, shapes, lanes, values, the ledger and the
// projection over it; then what the reader knows of its own encoding, then the
// given checks. It changes nothing and keeps a few words per entry in memory.
func Verify(ctx context.Context, r Reader, checks ...Check) iter.Seq[Problem] {
	return func(yield func(Problem) bool) {
		v := newVerifier(yield)
		v.run(ctx, r)
		if c, ok := r.(Checker); ok {
			v.all(c.Problems(ctx))
		}
		for _, check := range checks {
			if v.stopped {
				return
			}
			v.all(check(ctx, r))
		}
	}
}

// ProblemOf is the finding that a session could not be opened or read.
func ProblemOf(err error) Problem {
	p := Problem{Code: "unreadable", Severity: SeverityError, Message: err.Error()}
	var corrupt *Corrupt
	var newer *NewerVersion
	switch {
	case errors.As(err, &corrupt):
		p.Code = "corrupt"
		if corrupt.Line > 0 {
			p.Where = fmt.Sprintf("line %d, byte %d", corrupt.Line, corrupt.Offset)
		} else if corrupt.Offset >= 0 {
			p.Where = fmt.Sprintf("byte %d", corrupt.Offset)
		}
	case errors.As(err, &newer):
		p.Code = "newer_version"
	}
	return p
}

// verifier is one pass over a snapshot.
type verifier struct {
	yield   func(Problem) bool
	stopped bool

	ids    map[idKey]known
	orphan []orphan // references that nothing earlier satisfied
	last   int64    // the newest sequence number seen
	stats  Stats

	addresses  map[Address]WriteKind
	namespaces map[string]bool // unknown ones that were reported
	lanes      map[string]*laneValues
}

func newVerifier(yield func(Problem) bool) *verifier {
	return &verifier{
		yield: yield, ids: make(map[idKey]known), addresses: make(map[Address]WriteKind),
		namespaces: make(map[string]bool), lanes: make(map[string]*laneValues),
	}
}

func (v *verifier) all(problems iter.Seq[Problem]) {
	for p := range problems {
		if v.report(p); v.stopped {
			return
		}
	}
}

func (v *verifier) report(p Problem) {
	v.stopped = v.stopped || !v.yield(p)
}

func (v *verifier) fail(code, where, format string, args ...any) {
	if !v.stopped {
		v.report(Problem{code, SeverityError, fmt.Sprintf(format, args...), where})
	}
}

func (v *verifier) warn(code, where, format string, args ...any) {
	if !v.stopped {
		v.report(Problem{code, SeverityWarning, fmt.Sprintf(format, args...), where})
	}
}

func (v *verifier) run(ctx context.Context, r Reader) {
	before, err := r.Stats(ctx)
	if err != nil {
		v.report(ProblemOf(err))
		return
	}
	if err := v.records(ctx, r); err != nil {
		v.report(ProblemOf(err))
		return
	}
	v.references()
	v.checkLanes()
	after, err := r.Stats(ctx)
	if err != nil {
		v.report(ProblemOf(err))
		return
	}
	v.checkStats(before, after)
}

func (v *verifier) records(ctx context.Context, r Reader) error {
	snap, err := r.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer snap.Close()
	for rec, err := range snap.Records {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if v.record(&rec); v.stopped {
			return nil
		}
	}
	if snap.NextSeq <= v.last {
		v.fail("sequence", "", "the next sequence number is %d, but %d has been given", snap.NextSeq, v.last)
	}
	return nil
}

func (v *verifier) record(r *Record) {
	if r.Seq <= v.last {
		v.fail("sequence", recordName(r), "sequence number %d does not rise above %d", r.Seq, v.last)
	}
	v.last = max(v.last, r.Seq)
	v.stats = v.stats.Add(*r)
	switch r.Kind {
	case KindEntry:
		v.entry(r.Entry)
	case KindUsage:
		v.usage(r.Usage)
	default:
		v.addressed(r)
	}
}

func recordName(r *Record) string {
	switch r.Kind {
	case KindEntry:
		return "entry " + r.Entry.ID
	case KindUsage:
		return "usage " + r.Usage.ID
	}
	return r.Address.String()
}

// checkStats compares the projection with the records. A session that was
// written meanwhile is left alone: its projection belongs to another moment.
func (v *verifier) checkStats(before, after Stats) {
	if v.stopped || !sameStats(before, after) || sameStats(after, v.stats) {
		return
	}
	v.fail("stats", "", "stats say %d messages and usage %s, the records %d and %s",
		after.MessageCount, usageText(after), v.stats.MessageCount, usageText(v.stats))
}

func sameStats(a, b Stats) bool {
	return a.MessageCount == b.MessageCount && usageText(a) == usageText(b)
}

func usageText(s Stats) string {
	b, err := s.Usage.AppendJSON(nil)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
