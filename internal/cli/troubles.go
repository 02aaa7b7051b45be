package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/pkg/engine"
)

// failure is the error that the sweep ends with: of one item its own, of several
// what they have in common.
func (s *sweep) failure(ctx context.Context) error {
	if caught := context.Cause(ctx); caught != nil {
		return bySignal(ctx, caught)
	}
	tried := slices.DeleteFunc(slices.Clone(s.lanes), func(d driven) bool { return d.skipped })
	var codes []exitCode
	for _, d := range tried {
		codes = append(codes, codeOf(d.err))
	}
	code := sweptCode(codes)
	switch {
	case code == exitOK:
		return nil
	case len(tried) == 1:
		return tried[0].failure()
	}
	f := &failure{code: code, tag: code.tag(), message: describeEnds(tried)}
	troubles := s.troubles()
	for _, d := range troubles {
		f.stuck = f.stuck || explain(d.err).stuck
		if d.outcome.Reason == engine.WaitMissing {
			f.hint = "`drover doctor` looks at keys, programs and files; `drover help providers`, `drover help mcp`"
		}
	}
	if len(troubles) > 0 {
		f.details = func(o *object) {
			o.array("lanes", len(troubles), func(i int, o *object) { troubles[i].writeTrouble(o) })
		}
	}
	return f
}

// failure is how the item failed, which says which one it is.
func (d *driven) failure() error {
	f := *explain(d.err)
	f.cause, f.place = d.err, d.place()
	return &f
}

// troubles are the items that a person has to look at: what failed, and the waits
// that time alone does not end.
func (s *sweep) troubles() []driven {
	var all []driven
	for _, d := range s.lanes {
		if f := explain(d.err); f != nil && (f.code != exitLater || f.stuck) {
			all = append(all, d)
		}
	}
	return all
}

// tell names the troubles on stderr, but for those that the error of the whole sweep
// is about or that stand on the same terminal already.
func (s *sweep) tell(whole error) {
	if f := explain(whole); f != nil && f.place != "" {
		return
	}
	seen := s.out.outTTY && s.out.errTTY
	for _, d := range s.troubles() {
		if d.lane == "" || !seen {
			s.out.alert("%s: %s", escapeLine(d.place()), escapeLine(explain(d.err).message))
		}
	}
}

// place names the item among the others.
func (d *driven) place() string {
	if d.lane == "" {
		return d.session
	}
	return pursuit{session: d.session, lane: d.lane}.place()
}

func (d *driven) writeTrouble(o *object) {
	f := explain(d.err)
	o.str("session", d.session)
	o.optStr("lane", d.lane)
	o.str("code", f.tag)
	o.str("message", f.message)
	o.int("exit", int64(f.code))
}

// describeEnds counts how lanes ended, by kinds: one that waits is no failure.
func describeEnds(all []driven) string {
	counts := make(map[string]int)
	for _, d := range all {
		counts[describeEnd(explain(d.err))]++
	}
	var said []string
	for _, kind := range []string{"completed", "wait", "failed", "were aborted", "could not be driven"} {
		if n := counts[kind]; n > 0 {
			said = append(said, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return fmt.Sprintf("of %d lanes %s", len(all), strings.Join(said, ", "))
}

func describeEnd(f *failure) string {
	switch {
	case f == nil:
		return "completed"
	case f.code == exitLater:
		return "wait"
	case f.code == exitFailed:
		return "failed"
	case f.code == exitAborted:
		return "were aborted"
	}
	return "could not be driven"
}
