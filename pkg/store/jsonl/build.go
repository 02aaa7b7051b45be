package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/memory"
)

// chunk is how much of a new file is encoded before it is written.
const chunk = 256 << 10

// Build writes a whole new session file, one record a line. The folder is made
// when it is missing; the caller closes the snapshot. A session that is replaced
// is owned meanwhile, damaged or not: one that somebody else owns is *store.Held.
func (d Driver) Build(ctx context.Context, path string, snap *store.Snapshot, o store.BuildOptions) error {
	err := d.build(ctx, path, snap, o)
	if errors.Is(err, fs.ErrExist) {
		err = store.ErrExists
	}
	if err != nil {
		return fmt.Errorf("build %s: %w", path, err)
	}
	return nil
}

func (d Driver) build(ctx context.Context, path string, snap *store.Snapshot, o store.BuildOptions) error {
	if err := os.MkdirAll(filepath.Dir(path), fsx.DirMode); err != nil {
		return err
	}
	if o.Sweep {
		if err := sweep(d.fs(), path); err != nil {
			return err
		}
	}
	if !o.Replace {
		return d.put(ctx, path, snap, o)
	}
	real, err := resolve(path)
	if errors.Is(err, fs.ErrNotExist) {
		o.Replace = false // one that appears meanwhile is not replaced
		return d.put(ctx, path, snap, o)
	}
	if err != nil {
		return err
	}
	lock, err := acquire(ctx, real, 0)
	if err != nil {
		return err
	}
	err = sweep(d.fs(), real)
	if err == nil {
		err = d.put(ctx, real, snap, o)
	}
	return errors.Join(err, lock.Unlock())
}

// Write writes to w what Build would put into a session file. The caller closes
// the snapshot.
func (d Driver) Write(ctx context.Context, w io.Writer, snap *store.Snapshot) error {
	_, err := writeSnapshot(ctx, w, snap, func(*store.Record, memory.Place, int64) error { return nil })
	return err
}

// put writes the file; a session that it replaces is owned by the caller.
func (d Driver) put(ctx context.Context, path string, snap *store.Snapshot, o store.BuildOptions) error {
	opts := fsx.ReplaceOptions{Existing: o.Replace, NoSync: o.NoSync, Like: o.Like}
	if o.Judge != nil {
		opts.Ready = func(temp string) error { return o.Judge(ctx, temp) }
	}
	return fsx.Replace(d.fs(), path, opts, func(w io.Writer) error { return d.Write(ctx, w, snap) })
}

// writeSnapshot writes header and records and returns how many bytes that are.
// Each record goes to each as well, with where its payloads lie in the file and
// the length of its line.
func writeSnapshot(ctx context.Context, w io.Writer, snap *store.Snapshot, each func(*store.Record, memory.Place, int64) error) (written int64, err error) {
	h := snap.Header
	h.NextSeq = snap.NextSeq
	buf, err := h.AppendJSON(make([]byte, 0, chunk))
	if err != nil {
		return 0, fmt.Errorf("encode header: %w", err)
	}
	buf = append(buf, '\n')
	last := int64(0)
	for r, err := range snap.Records {
		if err != nil {
			return written, err
		}
		if r.Seq <= last {
			return written, fmt.Errorf("record with sequence number %d follows %d", r.Seq, last)
		}
		if err := encodable(&r); err != nil {
			return written, err
		}
		last = r.Seq
		start := len(buf)
		var at memory.Place
		buf, at = appendRecord(slices.Grow(buf, recordRoom(&r)), &r)
		buf = append(buf, '\n')
		if err := each(&r, moved(at, written), int64(len(buf)-start)); err != nil {
			return written, err
		}
		if len(buf) < chunk {
			continue
		}
		if err := ctx.Err(); err != nil {
			return written, context.Cause(ctx)
		}
		if _, err := w.Write(buf); err != nil {
			return written, err
		}
		written += int64(len(buf))
		buf = buf[:0]
	}
	_, err = w.Write(buf)
	return written + int64(len(buf)), err
}
