package store

import (
	"context"
	"errors"
	"fmt"
)

// Compact makes the session's file smaller, between two commits (spec §1.7). An
// encoding that cannot do that is errors.ErrUnsupported. A failure is no fault:
// the session goes on with the file that it has.
func (s *Session) Compact(ctx context.Context, o CompactOptions) (Compaction, error) {
	var done Compaction
	err := s.maintain(ctx, func() (err error) {
		c, ok := s.backend.(Compacter)
		if !ok {
			return errors.ErrUnsupported
		}
		done, err = c.Compact(ctx, o)
		return err
	})
	if err != nil {
		return Compaction{}, fmt.Errorf("compact session %s: %w", s.Header().ID, err)
	}
	return done, nil
}

// RepairIndex makes the derived data in the session's file anew, between two
// commits (D61). An encoding that keeps none has nothing to repair.
func (s *Session) RepairIndex(ctx context.Context) error {
	err := s.maintain(ctx, func() error {
		if r, ok := s.backend.(IndexRepairer); ok {
			return r.RepairIndex(ctx)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("repair index of session %s: %w", s.Header().ID, err)
	}
	return nil
}

// maintain runs a job on the commit queue.
func (s *Session) maintain(ctx context.Context, job func() error) error {
	return s.commits.Do(ctx, func() error {
		if err := s.Fault(); err != nil {
			return err
		}
		return job()
	})
}
