package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/store"
)

// chunk is how much of a new file is encoded before it is written.
const chunk = 256 << 10

// Build writes a whole new session file, one record a line. The folder is made
// when it is missing; the caller closes the snapshot.
func (d Driver) Build(ctx context.Context, path string, snap *store.Snapshot, o store.BuildOptions) error {
	err := os.MkdirAll(filepath.Dir(path), fsx.DirMode)
	if err == nil {
		opts := fsx.ReplaceOptions{Existing: o.Replace, NoSync: o.NoSync}
		err = fsx.Replace(d.fs(), path, opts, func(w io.Writer) error { return writeSnapshot(ctx, w, snap) })
	}
	if errors.Is(err, fs.ErrExist) {
		err = store.ErrExists
	}
	if err != nil {
		return fmt.Errorf("build %s: %w", path, err)
	}
	return nil
}

func writeSnapshot(ctx context.Context, w io.Writer, snap *store.Snapshot) error {
	h := snap.Header
	h.NextSeq = snap.NextSeq
	buf, err := h.AppendJSON(make([]byte, 0, chunk))
	if err != nil {
		return fmt.Errorf("encode header: %w", err)
	}
	buf = append(buf, '\n')
	last := int64(0)
	for r, err := range snap.Records {
		if err != nil {
			return err
		}
		if r.Seq <= last {
			return fmt.Errorf("record with sequence number %d follows %d", r.Seq, last)
		}
		last = r.Seq
		buf, _ = appendRecord(buf, &r)
		buf = append(buf, '\n')
		if len(buf) < chunk {
			continue
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
		buf = buf[:0]
	}
	_, err = w.Write(buf)
	return err
}
