package store

import (
	"context"
	"errors"
	"fmt"
)

// Exchange describes the replacement of a session's whole content by another
// (spec §2.9, D51).
type Exchange struct {
	// Next gives the new content, from a snapshot of the old. The generation of
	// the new one goes up by one, whatever Next says. What it returns is closed
	// with the old snapshot, which Next need not close.
	Next func(old *Snapshot) (*Snapshot, error)
	// Judge, if set, looks at the complete new store, which lies at path, before
	// it takes the old one's place. Its error keeps the old one. It closes no
	// reader but those that it opened.
	Judge func(ctx context.Context, path string, next Reader) error
}

// Exchanger is implemented by owned sessions whose content can be replaced.
type Exchanger interface {
	// Exchange writes the new store beside the session's and puts it in its place.
	// After an error that comes before the swap the old session stands as it was.
	// A crash at any point leaves the old file or the new one, complete. The
	// owner goes on in the new one.
	Exchange(ctx context.Context, x Exchange) error
}

// Exchange replaces the content of the session between two commits. Nothing that
// was read before holds afterwards: whoever keeps copies of values, as an engine
// does, must not use the session any more. An encoding that cannot do that is
// errors.ErrUnsupported. A failure is no fault: the session goes on with the
// content that it has.
func (s *Session) Exchange(ctx context.Context, x Exchange) error {
	err := s.maintain(ctx, func() error {
		e, ok := s.backend.(Exchanger)
		if !ok {
			return errors.ErrUnsupported
		}
		return e.Exchange(ctx, x)
	})
	if err != nil {
		return fmt.Errorf("replace session %s: %w", s.Header().ID, err)
	}
	return nil
}

// From runs Next over a snapshot and raises the generation.
func (x Exchange) From(old *Snapshot) (*Snapshot, error) {
	next, err := x.Next(old)
	if err != nil {
		return nil, err
	}
	raised := *next
	raised.Header.Generation = old.Header.Generation + 1
	return &raised, nil
}

// Examine runs Judge over the new store at path, read through d in the way that
// makes a full Verify fast.
func (x Exchange) Examine(ctx context.Context, d Driver, path string) error {
	if x.Judge == nil {
		return nil
	}
	r, err := ViewToVerify(ctx, d, path)
	if err != nil {
		return err
	}
	return errors.Join(x.Judge(ctx, path, r), r.Close())
}
