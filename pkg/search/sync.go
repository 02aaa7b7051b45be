package search

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/drover-run/drover/pkg/store"
)

// SyncOptions govern Sync; the zero value is good.
type SyncOptions struct {
	// Skipped is told of every session that cannot be read, Err set. What is
	// indexed of it stays.
	Skipped func(store.Listed)
	// Progress is told how many of the sessions that changed are done.
	Progress func(done, total int)
}

// Synced is what Sync did.
type Synced struct {
	Sessions int // that the repository has
	Changed  int // that were read
	Entries  int // that were added
	Removed  int // sessions that are gone
	Skipped  int // sessions that cannot be read
}

// known is what the index has of a session.
type known struct {
	id          int64 // 0: nothing
	generation  int64
	cursor      int64
	cursorEntry string
	stamp       string
}

// Sync makes the index tell what the repository's sessions say now (spec §2.8). It
// opens only those whose files have changed since it last read them, reads what is
// behind their cursor, and all of one whose store was replaced. Sessions that are gone
// are removed. When it fails, what it has done so far stands.
func (x *Index) Sync(ctx context.Context, repo *store.Repo, o SyncOptions) (done Synced, err error) {
	// Before the sessions are listed: what another process adds later is not taken
	// for gone.
	before, err := x.known(ctx)
	if err != nil {
		return done, err
	}
	listing, err := repo.ListFolder(ctx, store.ListUnread)
	if err != nil {
		return done, err
	}
	listed := listing.Sessions
	done.Sessions = len(listed)
	s := &syncing{x: x, repo: repo, o: o, done: &done, before: before}
	if err := s.unread(ctx, listed); err != nil {
		return done, err
	}
	if err := repo.Summarize(ctx, pointers(listed)); err != nil {
		return done, err
	}
	jobs := s.jobs(listed)
	for id := range before {
		if err := x.Remove(ctx, id); err != nil {
			return done, err
		}
		done.Removed++
	}
	return done, s.take(ctx, jobs)
}

// syncing is one Sync.
type syncing struct {
	x      *Index
	repo   *store.Repo
	o      SyncOptions
	done   *Synced
	before map[string]known
	taken  sync.Map // *store.Listed of which the reading has begun
	ended  int      // sessions that were read
}

// unread has the sessions read that nobody has read before, which is as good as
// opening them: they are indexed from the same view. One whose id another file may
// have as well waits until all are known.
func (s *syncing) unread(ctx context.Context, listed []store.Listed) error {
	files, total := make(map[string]int), 0
	for i := range listed {
		files[listed[i].Ref.ID]++
		if listed[i].Unread {
			total++
		}
	}
	return s.run(ctx, total, func(ctx context.Context, reports chan<- report) error {
		_ = s.repo.ReadUnread(ctx, listed, func(l *store.Listed, v store.Reader) {
			j := &job{listed: l, was: s.before[l.Ref.ID]}
			named := strings.HasPrefix(filepath.Base(l.Ref.Path), l.Ref.ID+".")
			if named && files[l.Ref.ID] == 1 && j.changed() {
				s.taken.Store(l, true)
				s.read(ctx, reports, j, func(r reader) error { return r.entries(ctx, v) })
			}
		})
		return context.Cause(ctx)
	})
}

// jobs are the sessions that are still to be read. What is left in before is gone.
func (s *syncing) jobs(listed []store.Listed) (jobs []*job) {
	for i := range listed {
		l := &listed[i]
		j := &job{listed: l, was: s.before[l.Ref.ID]}
		if !errors.Is(l.Err, store.ErrExists) { // the other file of that id counts
			delete(s.before, l.Ref.ID)
		}
		_, taken := s.taken.Load(l)
		switch {
		case taken:
		case l.Err != nil:
			s.done.skip(s.o, *l)
		case j.changed():
			jobs = append(jobs, j)
		}
	}
	return jobs
}

func (s *Synced) skip(o SyncOptions, l store.Listed) {
	s.Skipped++
	if o.Skipped != nil {
		o.Skipped(l)
	}
}

func pointers(listed []store.Listed) []*store.Listed {
	all := make([]*store.Listed, len(listed))
	for i := range listed {
		all[i] = &listed[i]
	}
	return all
}

const sqlKnown = `SELECT session_id, id, generation, cursor, cursor_entry, stamp FROM sessions`

func (x *Index) known(ctx context.Context) (map[string]known, error) {
	all := make(map[string]known)
	return all, x.conn.each(ctx, sqlKnown, nil, func(r *sql.Rows) error {
		var id string
		var k known
		err := r.Scan(&id, &k.id, &k.generation, &k.cursor, &k.cursorEntry, &k.stamp)
		all[id] = k
		return err
	})
}

// job is one session to be read.
type job struct {
	listed *store.Listed
	was    known
}

// changed tells that the session may not be what the index has read.
func (j *job) changed() bool { return j.was.stamp == "" || j.was.stamp != j.listed.Stamp() }

// report is what a reader has of a session: a batch of it, or how it ended.
type report struct {
	*batch
	job   *job
	ended bool
	err   error
}

// take reads the sessions on every core.
func (s *syncing) take(ctx context.Context, jobs []*job) error {
	return s.run(ctx, s.ended+len(jobs), func(ctx context.Context, reports chan<- report) error {
		var readers sync.WaitGroup
		var next atomic.Int64
		for range min(len(jobs), runtime.GOMAXPROCS(0)) {
			readers.Go(func() {
				for i := int(next.Add(1)) - 1; i < len(jobs) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
					s.read(ctx, reports, jobs[i], func(r reader) error { return r.session(ctx, s.repo) })
				}
			})
		}
		readers.Wait()
		return context.Cause(ctx)
	})
}

// read reports what of a session there is to index, and how its reading ended.
func (s *syncing) read(ctx context.Context, reports chan<- report, j *job, what func(reader) error) {
	r := reader{job: j, send: func(b *batch) error { return send(ctx, reports, report{batch: b, job: j}) }}
	// Nobody listens only once ctx has ended.
	_ = send(ctx, reports, report{job: j, ended: true, err: what(r)})
}

// run indexes what readers report. Batches of many sessions share a transaction: each
// costs the index a segment of its own.
func (s *syncing) run(ctx context.Context, total int, readers func(context.Context, chan<- report) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	reports := make(chan report)
	var cause error
	go func() {
		defer close(reports)
		cause = readers(ctx, reports)
	}()
	err := s.index(ctx, reports, total)
	if err != nil {
		stop()
	}
	for range reports { // the readers may hold one each
	}
	return cmp.Or(err, cause)
}

func send(ctx context.Context, to chan<- report, r report) error {
	select {
	case to <- r:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// index is the only writer. While it writes what has come, it takes as much again, so
// that the readers need not wait.
func (s *syncing) index(ctx context.Context, reports <-chan report, total int) error {
	var p pending
	written := make(chan error)
	busy := false
	for open := true; open || busy; {
		in := reports
		if busy && (p.full() || !open) {
			in = nil
		}
		select {
		case r, ok := <-in:
			if open = ok; ok {
				s.note(ctx, &p, r, total)
			}
		case err := <-written:
			if busy = false; err != nil {
				return err
			}
		}
		if !busy && len(p.batches) > 0 && (p.full() || !open) {
			go s.write(ctx, p.batches, written)
			p, busy = pending{}, true
		}
	}
	return nil
}

// note takes one report.
func (s *syncing) note(ctx context.Context, p *pending, r report, total int) {
	switch {
	case r.batch != nil:
		p.add(r.batch)
	case errors.Is(r.err, store.ErrNotFound): // it went meanwhile; the next sync removes it
	case r.err != nil && ctx.Err() == nil:
		l := *r.job.listed
		l.Err = r.err
		s.done.skip(s.o, l)
	case r.err == nil:
		s.done.Changed++
	}
	if !r.ended {
		return
	}
	s.ended++
	if s.o.Progress != nil {
		s.o.Progress(s.ended, total)
	}
}

func (s *syncing) write(ctx context.Context, batches []*batch, written chan<- error) {
	n, err := s.x.apply(ctx, batches)
	s.done.Entries += n
	written <- err
}
