package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Listed is one session of a repository, as far as its header tells.
type Listed struct {
	Ref     Ref
	Header  Header    // the zero Header of a legacy session
	ModTime time.Time // of its last change; zero for a store that is no file
	Err     error     // why the header cannot be read or trusted
}

// List returns every session of the repository in the byte order of their
// paths, reading their headers only. One that is damaged or unreadable has Err
// and is never left out; so has the second file of an id.
func (r *Repo) List(ctx context.Context) ([]Listed, error) {
	stores, err := r.stores(ctx)
	if err != nil {
		return nil, err
	}
	listed := make([]Listed, len(stores))
	for i, ref := range stores {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		listed[i] = r.inspect(ctx, ref)
	}
	markDuplicates(listed)
	return listed, nil
}

func (r *Repo) inspect(ctx context.Context, ref Ref) Listed {
	l := Listed{Ref: ref, ModTime: modTime(ref.Path)}
	h, err := r.Header(ctx, ref)
	var legacy *Legacy
	switch l.Ref.Legacy = errors.As(err, &legacy); {
	case err == nil:
		l.Ref.ID, l.Header = h.ID, h
	case !l.Ref.Legacy:
		l.Err = err
	}
	return l
}

// markDuplicates gives Err to every file whose session another file holds as
// well: the one that is named after the id, or the first, counts.
func markDuplicates(listed []Listed) {
	first := make(map[string]int, len(listed))
	for i, l := range listed {
		j, seen := first[l.Ref.ID]
		switch {
		case l.Err != nil:
		case !seen:
			first[l.Ref.ID] = i
		case namedAfter(l.Ref) && !namedAfter(listed[j].Ref):
			first[l.Ref.ID] = i
			listed[j].Err = duplicate(l.Ref)
		default:
			listed[i].Err = duplicate(listed[j].Ref)
		}
	}
}

func namedAfter(ref Ref) bool {
	return strings.HasPrefix(filepath.Base(ref.Path), ref.ID+".")
}

func duplicate(of Ref) error {
	return fmt.Errorf("session %s is also in %s: %w", of.ID, of.Path, ErrExists)
}

// Backups returns the paths of the files that earlier replacements kept, in
// byte order. They are no sessions (D57).
func (r *Repo) Backups(ctx context.Context) ([]string, error) {
	if r.o.Dir == "" {
		return nil, ctx.Err()
	}
	files, err := os.ReadDir(r.o.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list backups: %w", err)
	}
	var paths []string
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".bak") && f.Type().IsRegular() {
			paths = append(paths, filepath.Join(r.o.Dir, f.Name()))
		}
	}
	return paths, ctx.Err()
}
