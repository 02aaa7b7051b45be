package search

import (
	"context"
	"errors"

	"github.com/drover-run/drover/pkg/store"
)

// reader reads one session behind its cursor.
type reader struct {
	job  *job
	send func(*batch) error
}

// Pages of entries are as many as fit into pageBytes if they are as large as those
// before; nobody knows how large the first ones are.
const (
	firstPage = 32
	maxPage   = 1024
	pageBytes = 2 << 20
)

// session opens the session.
func (r *reader) session(ctx context.Context, repo *store.Repo) error {
	v, err := repo.View(ctx, r.job.listed.Ref)
	if err != nil {
		return err
	}
	return errors.Join(r.entries(ctx, v), v.Close())
}

func (r *reader) entries(ctx context.Context, v store.Reader) error {
	b := r.first(ctx, v)
	for limit := firstPage; ; {
		entries, err := v.ScanEntries(ctx, store.EntryQuery{Type: store.TypeMessage, FromSeq: b.to + 1, Limit: limit})
		if err != nil {
			return err
		}
		size := b.take(entries)
		if b.last = len(entries) < limit; b.last {
			b.stamp = r.job.listed.Stamp()
		}
		if err := r.send(b); err != nil || b.last {
			return err
		}
		b = b.next()
		limit = min(max(int(int64(limit)*pageBytes/max(size, 1)), 1), maxPage, 4*limit)
	}
}

// first is an empty batch that begins where the index stands, at the beginning when
// that is another store: of another generation, or one, put here by hand, that has
// not the entry which the cursor is on.
func (r *reader) first(ctx context.Context, v store.Reader) *batch {
	was := r.job.was
	b := &batch{session: r.job.listed.Ref.ID, generation: v.Header().Generation, was: was}
	if s := r.job.listed.Summary; s != nil {
		b.name = s.Name
	}
	if was.id == 0 {
		return b
	}
	if was.generation == b.generation && stands(ctx, v, was) {
		b.from, b.to, b.toEntry = was.cursor, was.cursor, was.cursorEntry
		return b
	}
	b.reset = true
	return b
}

func stands(ctx context.Context, v store.Reader, was known) bool {
	if was.cursor == 0 {
		return true
	}
	found, err := v.Entries(ctx, []string{was.cursorEntry})
	return err == nil && found[was.cursorEntry].Seq == was.cursor
}
