package store

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Summary is what a list shows of a session beyond its header. It is derived:
// the session alone has authority (D62).
type Summary struct {
	Name  string
	Lanes []string // in byte order
	Stats Stats
	// Open tells that a lane has an operation. What it waits for, and whether
	// anybody drives it, changes without the session: look into it.
	Open bool
}

// summarize reads the summary, and the header with the folder that the session
// works in now.
func summarize(ctx context.Context, q Queries) (*Summary, Header, error) {
	h := q.Header()
	s, err := summaryOf(ctx, q)
	if err == nil {
		h.CWD, err = WorkingFolder(ctx, q)
	}
	return s, h, err
}

func summaryOf(ctx context.Context, q Queries) (*Summary, error) {
	var s Summary
	name, _, err := Get(ctx, q, SessionName())
	if err != nil {
		return nil, err
	}
	s.Name = name.Value
	states, err := Scan(ctx, q, NewPrefix[LaneState]("pi.lane.state", ""))
	if err != nil {
		return nil, err
	}
	for _, state := range states {
		s.Lanes = append(s.Lanes, state.Address.Key)
		s.Open = s.Open || state.Value.CurrentOperationID != ""
	}
	s.Stats, err = q.Stats(ctx)
	return &s, err
}

// settled is how long a file must have been left alone before what was read of
// it is kept: within one tick of the file system's clock two writes look alike.
const settled = time.Second

// Summarize completes what List left out: a session without a current summary is
// read, on every core, and its summary kept for the next time. One that cannot be
// read gets Err. The error is that of ctx.
func (r *Repo) Summarize(ctx context.Context, listed []*Listed) error {
	var cold []*Listed
	for _, l := range listed {
		if l.Summary == nil && l.Err == nil {
			cold = append(cold, l)
		}
	}
	rows := make([]*catalogRow, len(cold))
	each(len(cold), func(i int) {
		if ctx.Err() == nil {
			rows[i], _ = r.look(ctx, cold[i], nil)
		}
	})
	r.catalog().add(rows)
	return ctx.Err()
}

// look reads one session, and has it used while it is open. What may have changed
// meanwhile is told and not kept.
func (r *Repo) look(ctx context.Context, l *Listed, use func(*Listed, Reader)) (keep *catalogRow, h Header) {
	before, stable := stampOf(l.Ref.Path)
	v, err := r.View(ctx, l.Ref)
	if err == nil {
		if l.Summary, h, err = summarize(ctx, v); err == nil && use != nil {
			l.Header, l.Ref.ID = h, h.ID
			use(l, v)
		}
		err = errors.Join(err, v.Close())
	}
	if err != nil {
		l.Summary, l.Err = nil, err
		return nil, h
	}
	l.Header.CWD = h.CWD
	after, still := stampOf(l.Ref.Path)
	age := time.Duration(time.Now().UnixNano() - max(after.main.mtime, after.log.mtime))
	if !stable || !still || before != after || age < settled || l.Ref.Legacy {
		return nil, h
	}
	return &catalogRow{file: l.Ref.Path, stamp: after, header: h, summary: l.Summary}, h
}

// closing reads the summary of a session that is about to be closed. The
// function that it returns keeps it, once the session is closed, when closing
// left the file as it was; otherwise the file is read as any other: its summary
// could be older than what another owner has written since.
func (r *Repo) closing(ref Ref) func(Queries) (keep func()) {
	return func(q Queries) func() {
		ctx := context.Background()
		before, stable := stampOf(ref.Path)
		if !stable {
			return func() {}
		}
		s, h, err := summarize(ctx, q)
		if err != nil {
			return func() {} // whoever reads it next will tell
		}
		row := &catalogRow{file: ref.Path, stamp: before, header: h, summary: s}
		return func() {
			if after, still := stampOf(ref.Path); still && after != before {
				row = r.reread(ctx, ref)
			}
			r.catalog().add([]*catalogRow{row})
		}
	}
}

// reread is look for a session that was closed this very moment.
func (r *Repo) reread(ctx context.Context, ref Ref) *catalogRow {
	before, _ := stampOf(ref.Path)
	v, err := r.View(ctx, ref)
	if err != nil {
		return nil
	}
	s, h, err := summarize(ctx, v)
	if err := errors.Join(err, v.Close()); err != nil {
		return nil
	}
	if after, stable := stampOf(ref.Path); !stable || after != before {
		return nil
	}
	return &catalogRow{file: ref.Path, stamp: before, header: h, summary: s}
}

// each calls do for 0 to n-1, on every core.
func each(n int, do func(i int)) {
	var g errgroup.Group
	var next atomic.Int64
	for range min(n, runtime.GOMAXPROCS(0)) {
		g.Go(func() error {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
			return nil
		})
	}
	_ = g.Wait()
}
