package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// SeveralFiles refuses a change that must reach all of a session, which has more than
// one file: what goes from one would stay in the others.
type SeveralFiles struct {
	ID    string
	Paths []string
}

func (e *SeveralFiles) Error() string {
	return fmt.Sprintf("session %s has %d files, and what goes from one would stay in the other: %s", e.ID, len(e.Paths), strings.Join(e.Paths, ", "))
}

// Unwrap makes it an ErrExists, as the second file of an id is in a list.
func (e *SeveralFiles) Unwrap() error { return ErrExists }

// Sole wants a session of the repository to have no other file there, readable or
// not. It fails with *SeveralFiles. A session that lies elsewhere is not looked for.
func (r *Repo) Sole(ctx context.Context, ref Ref) error {
	if !r.holds(ref.Path) {
		return nil
	}
	listed, err := r.List(ctx)
	if err != nil {
		return err
	}
	return SoleAmong(listed, ref)
}

// holds reports whether a file lies in the repository's folder, by whatever path.
func (r *Repo) holds(path string) bool {
	repo, err := os.Stat(r.o.Dir)
	if err != nil {
		return false
	}
	folder, err := os.Stat(filepath.Dir(path))
	return err == nil && os.SameFile(repo, folder)
}

// SoleAmong is Repo.Sole, of a repository that has been listed.
func SoleAmong(listed []Listed, ref Ref) error {
	all := []string{ref.Path}
	for _, l := range listed {
		if l.Ref.ID == ref.ID && filepath.Base(l.Ref.Path) != filepath.Base(ref.Path) {
			all = append(all, l.Ref.Path)
		}
	}
	if len(all) == 1 {
		return nil
	}
	return &SeveralFiles{ID: ref.ID, Paths: all}
}
