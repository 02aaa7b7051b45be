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

// PlanCompaction tells what Compact would do to a session, also while another
// process owns it, and changes nothing of it.
func (r *Repo) PlanCompaction(ctx context.Context, ref Ref, o CompactOptions) (Compaction, error) {
	if ref.Legacy {
		return Compaction{}, fmt.Errorf("plan compaction of session %s: %w", ref.ID, &Legacy{Path: ref.Path})
	}
	v, err := r.stored(ctx, ref)
	if err != nil {
		return Compaction{}, err
	}
	p, ok := v.(CompactionPlanner)
	if !ok {
		return Compaction{}, errors.Join(errors.ErrUnsupported, v.Close())
	}
	c, err := p.PlanCompaction(ctx, o)
	return c, errors.Join(err, v.Close())
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
