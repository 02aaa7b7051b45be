package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/memory"
)

// A session is compacted by itself when it is opened by an owner, and after a
// commit that deletes something, once both are true: more than half of the file
// is dead, so that a byte is rewritten once for each that was appended; and that
// is more than eight megabytes, so that small sessions are left in peace and the
// waits for the disk, which a rewrite of any size has, stay a small part of the
// time that the dead bytes took to append (spec §1.7).
const (
	tidyRatio = 0.5
	tidyBytes = 8 << 20
)

// errNotSmaller is a rewrite that is dropped (D17).
var errNotSmaller = errors.New("the new file would not be smaller")

// Compact puts a file with the header and the surviving records, one a line, in
// the place of the session's (spec §1.7). The header gets the sequence number
// that comes next. Views, snapshots and queries that began before go on in the
// old file. What an earlier compaction or build of this session left behind when
// it was killed is removed. The file is left as it is, with a *store.Lost, when
// it is not the one that this owner left.
func (b *backend) Compact(ctx context.Context, o store.CompactOptions) (store.Compaction, error) {
	if err := b.enter(ctx); err != nil {
		return store.Compaction{}, err
	}
	defer b.leave()
	c, err := b.compact(ctx, o)
	if err != nil {
		return store.Compaction{}, fmt.Errorf("compact %s: %w", b.path, err)
	}
	return c, nil
}

func (b *backend) compact(ctx context.Context, o store.CompactOptions) (store.Compaction, error) {
	c := unchanged(b.end, b.tally)
	if b.broken != nil {
		return c, fmt.Errorf("refused after a failed commit: %w", b.broken)
	}
	if err := sweep(b.fs, b.path); err != nil {
		return c, err
	}
	next, err := prepare(ctx, b.State, b.tally, b.end, o)
	if err != nil || next == nil {
		return c, err
	}
	return next.outcome(c, b.exchange(ctx, next, b.end, func(string) error { return nil }))
}

// PlanCompaction measures the rewrite of the file as the view sees it.
func (r *reader) PlanCompaction(ctx context.Context, o store.CompactOptions) (store.Compaction, error) {
	c := unchanged(r.end, r.tally)
	next, err := prepare(ctx, r.State, r.tally, r.end, o)
	if err == nil && next != nil {
		c, err = next.outcome(c, next.write(ctx, io.Discard, r.end))
	}
	if err != nil {
		return store.Compaction{}, fmt.Errorf("plan compaction of %s: %w", r.path, err)
	}
	return c, nil
}

// unchanged is the outcome for a file that is left as it is.
func unchanged(end int64, t tally) store.Compaction {
	return store.Compaction{BytesBefore: end, BytesAfter: end, RecordsBefore: t.records, RecordsAfter: t.records}
}

// prepare begins the rewrite of a file that has enough dead bytes; nil is one
// that has not.
func prepare(ctx context.Context, s *memory.State, t tally, end int64, o store.CompactOptions) (*rewrite, error) {
	dead, err := deadBytes(s, t, end)
	if err != nil || float64(dead) < o.MinDead*float64(end) {
		return nil, err
	}
	snap, err := s.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return newRewrite(snap), nil
}

// deadBytes is how much of a file a compaction would leave out.
func deadBytes(s *memory.State, t tally, end int64) (int64, error) {
	h := s.Header()
	h.NextSeq = s.Base(0).NextSeq
	line, err := h.AppendJSON(nil)
	return end - int64(len(line)+len("\n")) - t.live.bytes, err
}

// rewrite is the file that a compaction writes.
type rewrite struct {
	snap   *store.Snapshot
	state  *memory.State
	source *source
	tally  tally
	size   int64
}

func newRewrite(snap *store.Snapshot) *rewrite {
	h, src := snap.Header, new(source)
	h.NextSeq = snap.NextSeq
	return &rewrite{snap: snap, state: memory.NewState(h, src), source: src, tally: newTally()}
}

// write fails with errNotSmaller when the file would have limit bytes or more.
func (r *rewrite) write(ctx context.Context, w io.Writer, limit int64) (err error) {
	r.size, err = writeSnapshot(ctx, w, r.snap, func(rec *store.Record, at memory.Place, size int64) error {
		r.tally.add(rec, size)
		return r.state.Replay(rec, held(rec, at))
	})
	if err == nil && r.size >= limit {
		err = errNotSmaller
	}
	return err
}

// outcome is what came of the rewrite, err included; c is that of none.
func (r *rewrite) outcome(c store.Compaction, err error) (store.Compaction, error) {
	if errors.Is(err, errNotSmaller) {
		return c, nil
	}
	c.BytesAfter, c.RecordsAfter, c.Changed = r.size, r.tally.records, true
	return c, err
}

// exchange writes the new file, gives it the name and goes on in it, unless it
// has limit bytes or more or does not stand the judgement. All that can fail
// comes before the renaming, but for the sync of the folder.
func (b *backend) exchange(ctx context.Context, next *rewrite, limit int64, judge func(temp string) error) error {
	var file fsx.File
	opts := fsx.ReplaceOptions{Existing: true, Ready: func(temp string) (err error) {
		if err = judge(temp); err == nil {
			err = b.check()
		}
		if err == nil {
			file, err = b.fs.OpenFile(temp, os.O_RDWR, 0)
		}
		return err
	}}
	err := fsx.Replace(b.fs, b.path, opts, func(w io.Writer) error { return next.write(ctx, w, limit) })
	if file == nil {
		return err
	}
	if err != nil && !names(b.path, file) {
		return errors.Join(err, file.Close())
	}
	if err != nil && b.powerSafe {
		b.broken = err // power loss would take later commits away with the name
	}
	next.source.f = file
	b.Adopt(next.state)
	// The old file stays open for those who still read it; the runtime closes it
	// behind the last of them.
	b.file, b.identity, b.size, b.end, b.bare, b.tally = file, nil, next.size, next.size, false, next.tally
	return err
}

// names reports whether the path is that of the open file.
func names(path string, f fsx.File) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(mine, there)
}

// tidy compacts a session that has enough dead bytes. It serves nobody who could
// be told of an error: the session goes on without, and whether its file is lost
// is for Check to find. The next attempt waits until the file has grown.
func (b *backend) tidy(ctx context.Context) {
	if b.end < b.idle || b.end <= tidyBytes || b.broken != nil {
		return
	}
	dead, err := deadBytes(b.State, b.tally, b.end)
	if err != nil || dead <= tidyBytes || float64(dead) <= tidyRatio*float64(b.end) {
		return
	}
	if c, err := b.compact(ctx, store.CompactOptions{}); err != nil || !c.Changed {
		b.idle = b.end + tidyBytes
	}
}

func deletes(tx store.Tx) bool {
	for _, w := range tx {
		if w.Op == store.OpDelete {
			return true
		}
	}
	return false
}

// sweep removes the temporary files beside the session at path. Under its lock
// none of them is in use.
func sweep(fsys fsx.FS, path string) error {
	names, err := fsx.Temps(path)
	for _, name := range names {
		err = errors.Join(err, fsys.Remove(name))
	}
	return err
}
