package store

import (
	"context"
	"fmt"
)

// Mender is implemented by owned sessions around whose content an interrupted
// writer can leave something.
type Mender interface {
	// Mend cuts off the beginning of a commit that was not finished, removes the
	// temporary files of interrupted replacements, and makes the indexes anew that
	// the encoding's own engine keeps. Nothing that was committed changes.
	Mend(ctx context.Context) error
}

// Mend puts right all that a session's file can be mended of without losing a
// committed byte, between two commits: what Mender does, and the derived data as
// RepairIndex does it.
func (s *Session) Mend(ctx context.Context) error {
	err := s.maintain(ctx, func() error {
		if m, ok := s.backend.(Mender); ok {
			return m.Mend(ctx)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("mend session %s: %w", s.Header().ID, err)
	}
	return s.RepairIndex(ctx)
}
