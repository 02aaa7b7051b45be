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
	// Summary is what the catalog knows of the session as it is now, nil when that
	// is nothing: Summarize reads it (D62).
	Summary *Summary
}

// List returns every session of the repository in the byte order of their
// paths, reading their headers only, and those of the catalog not even that. One that is damaged or unreadable has Err
// and is never left out; so has the second file of an id.
func (r *Repo) List(ctx context.Context) ([]Listed, error) {
	stores, err := r.stores(ctx)
	if err != nil {
		return nil, err
	}
	known, logs := r.catalog().load(), r.logs()
	listed := make([]Listed, len(stores))
	each(len(stores), func(i int) {
		if ctx.Err() == nil {
			name := filepath.Base(stores[i].Path)
			listed[i] = r.inspect(ctx, stores[i], known[name], logs[name+logSuffix])
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	markDuplicates(listed)
	return listed, nil
}

func (r *Repo) inspect(ctx context.Context, ref Ref, row *catalogRow, log bool) Listed {
	look := bareStampOf
	if log {
		look = stampOf
	}
	now, stable := look(ref.Path)
	if row != nil && stable && now == row.stamp {
		ref.ID = row.header.ID
		return Listed{Ref: ref, Header: row.header, ModTime: now.modTime(), Summary: row.summary}
	}
	l := Listed{Ref: ref, ModTime: now.modTime()}
	if !stable {
		l.ModTime = modTime(ref.Path) // a link, or no file at all
	}
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
