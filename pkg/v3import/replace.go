package v3import

import (
	"context"
	"errors"
	"fmt"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
)

// wouldReplace refuses in a dry run what untouched refuses in the real one. What is
// there and cannot be read is judged by the real one only.
func (b *batch) wouldReplace(ctx context.Context, c *candidate, old *origin) error {
	if old == nil || old.ref.ID == "" {
		return nil
	}
	r, err := b.target.View(ctx, old.ref)
	if err != nil {
		return ctx.Err()
	}
	return errors.Join(c.untouched(ctx, r), r.Close())
}

// untouched refuses to replace a session in which anything happened since it was
// imported: no source has that. Compaction of the file and a move to another encoding
// keep sequence numbers, and are no change; a rewrite is one, since the source still
// holds what it took out.
func (c *candidate) untouched(ctx context.Context, old store.Reader) error {
	s, err := old.Snapshot(ctx)
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	h := s.Header
	next, counted := rawjson.GetInt(h.Source, "nextSeq")
	what := ""
	switch {
	case h.Rewritten():
		what = "was rewritten here since its import"
	case !counted:
		what = "may have been continued here: its import did not note where it ended"
	case next != s.NextSeq:
		what = "was continued here since its import"
	default:
		return nil
	}
	return c.exists("session %s %s, and is not replaced; import the file beside it with --new-id, or delete the session first", h.ID, what)
}

func (c *candidate) exists(format string, args ...any) error {
	return &Failure{Path: c.Path, Code: CodeExists, Message: fmt.Sprintf(format, args...), Line: c.line, Offset: c.off}
}
