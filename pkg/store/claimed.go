package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Claimed is a session that this process owns in order to remove it.
type Claimed struct {
	repo  *Repo
	ref   Ref
	claim Claim
}

// Claim takes ownership of a session, damaged ones included, in order to remove
// it. An open one is ErrOpen or *Held, one that is not there *Moved or ErrNotFound; a legacy
// file is never removed. Whoever claims it closes it.
func (r *Repo) Claim(ctx context.Context, ref Ref) (*Claimed, error) {
	if ref.Legacy {
		return nil, fmt.Errorf("delete session %s: %w", ref.ID, &Legacy{Path: ref.Path})
	}
	if !r.claim(ref.Path) {
		return nil, fmt.Errorf("delete session %s: %w", ref.ID, ErrOpen)
	}
	claim, err := ask(r, ref, "delete", func(d Driver) (Claim, error) { return d.Claim(ctx, ref.Path, r.o.Open) })
	if err != nil {
		r.release(ref.Path)
		return nil, r.elsewhere(ctx, ref, err)
	}
	return &Claimed{repo: r, ref: ref, claim: claim}, nil
}

// Remove removes the session, its backups and its side files. The session itself
// goes last; what fails in between leaves one that can be deleted again.
func (c *Claimed) Remove(ctx context.Context) error {
	err := c.repo.removeBackups(c.ref)
	if err == nil {
		err = c.claim.Remove(ctx)
	}
	if err != nil {
		return fmt.Errorf("delete session %s: %w", c.ref.ID, err)
	}
	return nil
}

// Close gives the ownership up, whether the session was removed or not.
func (c *Claimed) Close() error {
	defer c.repo.release(c.ref.Path)
	return c.claim.Close()
}

// backupSuffixes end the names of what replacements keep of a session (D57, D58).
func backupSuffixes() []string { return []string{".bak", ".v3.bak"} }

// removeBackups removes the backups of a session in its own and in other
// encodings, but not those of another file that holds the same id, or has the name
// that the session's would have. Behind a link they lie beside the file.
func (r *Repo) removeBackups(ref Ref) error {
	stores := []string{ref.Path}
	var others []string
	file, link, err := behind(ref)
	linked := err == nil && link != nil
	if linked {
		stores = append(stores, file.Path)
	}
	for _, d := range r.o.Drivers {
		others = append(others, r.path(d, ref.ID), r.beside(ref, d)) // its name need not be the id
		if linked {
			others = append(others, r.beside(file, d))
		}
	}
	for _, path := range others {
		if _, err := os.Lstat(path); path != ref.Path && errors.Is(err, fs.ErrNotExist) {
			stores = append(stores, path)
		}
	}
	for _, path := range stores {
		for _, suffix := range backupSuffixes() {
			if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// RemoveResidue removes what an interrupted deletion left of a session that is
// gone. Where a session of the id exists it does nothing.
func (r *Repo) RemoveResidue(ctx context.Context, id string) error {
	holders, err := r.holders(ctx, id)
	if err != nil || len(holders) > 0 {
		return err
	}
	for _, d := range r.o.Drivers {
		if err := d.Delete(ctx, r.path(d, id), r.o.Open); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove what is left of session %s: %w", id, err)
		}
	}
	return r.removeBackups(Ref{ID: id, Path: r.path(r.o.Drivers[0], id)})
}

// Past is what deleted sessions left for the next one of their id (D57).
type Past struct {
	Generation int64 // the highest that one had; the next one goes on from it
	First      Tx    // is written with the new content; its addresses are free there
}

// inherit gives a new session what the deleted ones of its id left.
func (r *Repo) inherit(next *Snapshot) error {
	if r.o.Past == nil {
		return nil
	}
	past, err := r.o.Past(next.Header.ID)
	if err != nil {
		return err
	}
	if past.Generation > 0 {
		next.Header.Generation = max(next.Header.Generation, past.Generation+1)
	}
	if len(past.First) == 0 {
		return nil
	}
	first, _, err := Prepare(past.First, Base{NextSeq: next.NextSeq, Now: r.o.Now()})
	if err != nil {
		return err
	}
	next.NextSeq += int64(len(first))
	next.Outline, next.Judged = nil, nil
	records := next.Records
	next.Records = func(yield func(Record, error) bool) {
		for rec, err := range records {
			if !yield(rec, err) {
				return
			}
		}
		for _, rec := range first {
			if !yield(rec, nil) {
				return
			}
		}
	}
	return nil
}
