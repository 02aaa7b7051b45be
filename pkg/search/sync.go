package search

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
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
	listing, err := repo.ListFolder(ctx, true)
	if err != nil {
		return done, err
	}
	listed := listing.Sessions
	if err := repo.Summarize(ctx, pointers(listed)); err != nil {
		return done, err
	}
	done.Sessions = len(listed)
	var jobs []*job
	for i := range listed {
		l := &listed[i]
		was, ok := before[l.Ref.ID]
		if !errors.Is(l.Err, store.ErrExists) { // the other file of that id counts
			delete(before, l.Ref.ID)
		}
		switch {
		case l.Err != nil:
			done.skip(o, *l)
		case !ok || was.stamp == "" || was.stamp != l.Stamp():
			jobs = append(jobs, &job{listed: l, was: was})
		}
	}
	for id := range before {
		if err := x.Remove(ctx, id); err != nil {
			return done, err
		}
		done.Removed++
	}
	return done, x.take(ctx, repo, o, jobs, &done)
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

// report is what a reader has of a session: a batch of it, or how it ended.
type report struct {
	*batch
	job   *job
	ended bool
	err   error
}

// take reads the sessions on every core and indexes what comes. Batches of many
// sessions share a transaction: each costs the index a segment of its own.
func (x *Index) take(ctx context.Context, repo *store.Repo, o SyncOptions, jobs []*job, done *Synced) error {
	ctx, stop := context.WithCancel(ctx)
	reports := make(chan report)
	var readers sync.WaitGroup
	var next atomic.Int64
	for range min(len(jobs), runtime.GOMAXPROCS(0)) {
		readers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(jobs) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				r := reader{repo: repo, job: jobs[i], send: func(b *batch) error { return send(ctx, reports, report{batch: b, job: jobs[i]}) }}
				// Nobody listens only once ctx has ended.
				_ = send(ctx, reports, report{job: jobs[i], ended: true, err: r.read(ctx)})
			}
		})
	}
	go func() { readers.Wait(); close(reports) }()
	err := x.index(ctx, o, reports, len(jobs), done)
	cause := context.Cause(ctx)
	stop()
	for range reports { // the readers may hold one each
	}
	if err == nil {
		err = cause
	}
	return err
}

func send(ctx context.Context, to chan<- report, r report) error {
	select {
	case to <- r:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// index is the only writer.
func (x *Index) index(ctx context.Context, o SyncOptions, reports <-chan report, total int, done *Synced) error {
	var p pending
	ended := 0
	for r := range reports {
		switch {
		case r.batch != nil:
			p.add(r.batch)
		case errors.Is(r.err, store.ErrNotFound): // it went meanwhile; the next sync removes it
		case r.err != nil && ctx.Err() == nil:
			l := *r.job.listed
			l.Err = r.err
			done.skip(o, l)
		case r.err == nil:
			done.Changed++
		}
		if r.ended {
			ended++
			if o.Progress != nil {
				o.Progress(ended, total)
			}
		}
		if p.full() {
			if err := x.flush(ctx, &p, done); err != nil {
				return err
			}
		}
	}
	return x.flush(ctx, &p, done)
}

func (x *Index) flush(ctx context.Context, p *pending, done *Synced) error {
	if len(p.batches) == 0 {
		return nil
	}
	n, err := x.apply(ctx, p.batches)
	done.Entries += n
	*p = pending{}
	return err
}
