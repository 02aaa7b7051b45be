package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
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

// Check begins a part of Verify that another package knows how to do, such as the
// ownership of operation values. It may read what it needs of the session, but
// the records come to it by themselves.
type Check func(ctx context.Context, r Reader) Inspection

// Inspection is a check under way: it takes part in the one pass over the records.
type Inspection interface {
	// Record looks at the next record in sequence order. That of an entry or a
	// ledger row may have no payload, and none is valid after the call.
	Record(r *Record)
	// Problems are the findings, once every record has been seen.
	Problems() iter.Seq[Problem]
}

// Checker is implemented by readers that can check their own encoding: framing,
// indexes, leftovers (D7). Problems runs beside the reader's queries.
type Checker interface {
	Problems(ctx context.Context) iter.Seq[Problem]
}

// Verify is a full Verification with the given checks.
func Verify(ctx context.Context, r Reader, checks ...Check) iter.Seq[Problem] {
	return (&Verification{Checks: checks}).Problems(ctx, r)
}

// Verification checks one session against the invariants of spec §9.1.
type Verification struct {
	// Checks are the parts that other packages know; their findings come last.
	Checks []Check
	// Fast looks at the lanes alone, beyond what opening the session checked: no
	// entry, no payload, no ledger.
	Fast bool
	// Seen, if set, is called with every record that a full check reads, so that
	// somebody who looks for something else need not read them again.
	Seen func(*Record)
	// Counts is what the session holds, once a full check has ended.
	Counts Counts
}

// Problems checks ids, sequence numbers, parents, shapes, lanes, values, the
// ledger and the projection over it; then what the reader knows of its own
// encoding, then Checks. It changes nothing, reads every payload once, and keeps
// a few words per entry in memory.
func (v *Verification) Problems(ctx context.Context, r Reader) iter.Seq[Problem] {
	return func(yield func(Problem) bool) {
		run := newVerifier(yield)
		run.seen = v.Seen
		if v.Fast {
			run.fast(ctx, r)
			return
		}
		own := besides(ctx, r)
		for _, check := range v.Checks {
			run.inspections = append(run.inspections, check(ctx, r))
		}
		whole := run.run(ctx, r)
		v.Counts = run.counts
		if problems := own(run.stopped); !run.stopped {
			run.all(slices.Values(problems))
		}
		for _, inspection := range run.inspections {
			if run.stopped || !whole {
				return // nobody can tell what the records that were not read would show
			}
			run.all(inspection.Problems())
		}
	}
}

// besides lets a reader check its encoding while its records are judged. The
// function that it returns waits for the findings, or cuts the check short when
// nobody wants them.
func besides(ctx context.Context, r Reader) (found func(unwanted bool) []Problem) {
	c, ok := r.(Checker)
	if !ok {
		return func(bool) []Problem { return nil }
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan []Problem, 1)
	go func() { done <- slices.Collect(c.Problems(ctx)) }()
	return func(unwanted bool) []Problem {
		if unwanted {
			cancel()
		}
		problems := <-done
		cancel()
		return problems
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
		} else if corrupt.Entry != "" {
			p.Where = "entry " + corrupt.Entry
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
	seen    func(*Record) // nil when nobody looks

	ids    map[IDKey]known
	chains []callChain // the first is none

	// place, if the snapshot has it, stands in for ids; reached are the calls of
	// the entries so far.
	place   func(id string) (n int, kind IDKind)
	reached []chainRef

	newestID string // of the entry that came last, and what is known of it
	newest   known

	orphan []orphan // references that nothing earlier satisfied
	last   int64    // the newest sequence number seen
	stats  Stats
	judged bool // records come with verdicts, and stats are not added up
	counts Counts

	inspections []Inspection

	addresses  map[Address]WriteKind
	namespaces map[string]bool // unknown ones that were reported
	lanes      map[string]*laneValues
}

func newVerifier(yield func(Problem) bool) *verifier {
	return &verifier{
		yield: yield, ids: make(map[IDKey]known), chains: make([]callChain, 1), addresses: make(map[Address]WriteKind),
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

// fast reads what says where the lanes stand, and nothing else.
func (v *verifier) fast(ctx context.Context, r Reader) {
	if _, err := r.Stats(ctx); err != nil {
		v.report(ProblemOf(err))
		return
	}
	for _, namespace := range []string{"pi.lane.leaf", "pi.lane.config", "pi.lane.state", "pi.lane.lastResult"} {
		values, err := r.ScanValues(ctx, Address{Namespace: namespace})
		if err != nil {
			v.report(ProblemOf(err))
			return
		}
		for _, value := range values {
			v.laneValue(value.Address, value.Value)
		}
	}
	if err := v.placeLeaves(ctx, r); err != nil {
		v.report(ProblemOf(err))
		return
	}
	v.checkLanes()
}

// placeLeaves learns which leaves exist.
func (v *verifier) placeLeaves(ctx context.Context, r Reader) error {
	var ids []string
	for _, l := range v.lanes {
		if leaf, err := decode[LeafID](l.leaf, nil); err == nil && leaf != "" {
			ids = append(ids, string(leaf))
		}
	}
	found, err := r.Entries(ctx, ids)
	for id := range found {
		v.ids[KeyOf(id)] = known{kind: IDEntry}
	}
	return err
}

// lineage checks what the header says of the session that this one comes from,
// which may be gone.
func (v *verifier) lineage(h Header) {
	switch parent := h.ParentSessionID; {
	case parent == "":
	case parent == h.ID:
		v.fail("fork_lineage", "header", "the session is its own parent")
	case CheckID(parent) != nil:
		v.warn("fork_lineage", "header", "parent session %q is no session id", parent)
	}
}

// run makes the pass over the records, whole when all of them could be read.
func (v *verifier) run(ctx context.Context, r Reader) (whole bool) {
	v.lineage(r.Header())
	before, err := r.Stats(ctx)
	if err != nil {
		v.report(ProblemOf(err))
		return false
	}
	if err := v.records(ctx, r); err != nil {
		v.report(ProblemOf(err))
		return false
	}
	v.references()
	v.checkLanes()
	after, err := r.Stats(ctx)
	if err != nil {
		v.report(ProblemOf(err))
		return false
	}
	v.checkStats(before, after)
	return true
}

// manyIDs bounds the memory that is taken on the word of a sequence number.
const manyIDs = 1 << 17

func (v *verifier) records(ctx context.Context, r Reader) error {
	snap, err := r.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer snap.Close()
	if err := v.pass(ctx, snap); err != nil || v.stopped {
		return err
	}
	if snap.NextSeq <= v.last {
		v.fail("sequence", "", "the next sequence number is %d, but %d has been given", snap.NextSeq, v.last)
	}
	return nil
}

// pass looks at every record. Somebody else who looks wants the payloads.
func (v *verifier) pass(ctx context.Context, snap *Snapshot) error {
	if v.judged = snap.Judged != nil && v.seen == nil; v.judged {
		v.place = snap.Place
		return v.short(ctx, snap.Judged)
	}
	v.ids = make(map[IDKey]known, min(max(snap.NextSeq, 0), manyIDs))
	ahead := readAhead(ctx, snap.Records)
	defer ahead.stop()
	for batch := range ahead.batches {
		for i := range batch {
			if v.record(&batch[i]); v.stopped {
				return nil
			}
			if v.seen != nil {
				v.seen(&batch[i])
			}
		}
	}
	return ahead.err
}

// short is the pass over records that hardly have payloads any more.
func (v *verifier) short(ctx context.Context, records iter.Seq2[Record, error]) error {
	var r Record
	for next, err := range records {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		r = next
		if v.record(&r); v.stopped {
			return nil
		}
	}
	return nil
}

func (v *verifier) record(r *Record) {
	if r.Seq <= v.last {
		v.fail("sequence", r.Name(), "sequence number %d does not rise above %d", r.Seq, v.last)
	}
	v.last = max(v.last, r.Seq)
	for _, inspection := range v.inspections {
		inspection.Record(r)
	}
	switch r.Kind {
	case KindEntry:
		v.counts.add(r, false)
		v.entry(r.Entry, r.Verdict)
	case KindUsage:
		v.counts.add(r, false)
		v.usage(r.Usage, r.Verdict) // and its stats
	default:
		_, seen := v.addresses[r.Address]
		v.counts.add(r, seen)
		v.addressed(r)
	}
}

// checkStats compares the projection with the records. A session that was
// written meanwhile is left alone: its projection belongs to another moment. So is
// a judged one, whose projection was made of the records when they were judged.
func (v *verifier) checkStats(before, after Stats) {
	v.stats.MessageCount = v.counts.Messages
	if v.stopped || v.judged || !sameStats(before, after) || sameStats(after, v.stats) {
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
