package store

import (
	"context"
	"errors"
	"fmt"
)

// Moved refuses a session whose file has become one in another encoding since it was
// found, as may happen to who waits for its owner. It is there under To.
type Moved struct{ From, To Ref }

func (e *Moved) Error() string {
	return fmt.Sprintf("session %s has moved meanwhile: it was %s and is %s", e.From.ID, e.From.Path, e.To.Path)
}

// Unwrap returns ErrNotFound: there is nothing where the session was.
func (e *Moved) Unwrap() error { return ErrNotFound }

// elsewhere makes the error of a session that is not there any more *Moved where it is
// in another encoding.
func (r *Repo) elsewhere(ctx context.Context, ref Ref, err error) error {
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	for _, d := range r.o.Drivers {
		to := Ref{ID: ref.ID, Path: r.beside(ref, d), Backend: d.Name()}
		if to.Backend == ref.Backend {
			continue
		}
		if h, look := r.Header(ctx, to); look == nil && h.ID == ref.ID {
			return &Moved{From: ref, To: to}
		}
	}
	return err
}
