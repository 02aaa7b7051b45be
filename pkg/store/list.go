package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// Listed is one session of a repository, as far as its header tells.
type Listed struct {
	Ref     Ref
	Header  Header    // the zero Header of a legacy session; with a Summary, its CWD is that of now
	ModTime time.Time // of its last change; zero for a store that is no file
	Err     error     // why the header cannot be read or trusted
	// Summary is what the catalog knows of the session as it is now, nil when that
	// is nothing: Summarize reads it (D62).
	Summary *Summary

	stamp stamp // of the files before anything was read of them
}

// Stamp tells one content of the session's files from another, for whoever keeps
// what was read of them (D62). It is "" while the next change may look the same: of a
// link, or right after a change.
func (l Listed) Stamp() string {
	if l.stamp == (stamp{}) {
		return ""
	}
	return string(l.stamp.appendJSON(nil))
}

// List returns every session of the repository in the byte order of their
// paths, reading their headers only, and those of the catalog not even that. One
// that is damaged or unreadable has Err and is never left out; so has the second
// file of an id.
func (r *Repo) List(ctx context.Context) ([]Listed, error) {
	l, err := r.ListFolder(ctx, false)
	return l.Sessions, err
}

// Listing is what the repository's folder held at one moment.
type Listing struct {
	Sessions []Listed // as List tells
	// Backups are the paths of the files that earlier replacements kept, in byte
	// order. They are no sessions (D57).
	Backups []string
}

// ListFolder is List with the backups. summarize is for somebody who will have every
// session summarized: one whose header costs as much as the whole is opened once for
// both.
func (r *Repo) ListFolder(ctx context.Context, summarize bool) (Listing, error) {
	whole := func(Ref) bool { return false }
	if summarize {
		whole = r.headerIsView
	}
	f, err := r.folder()
	if err != nil {
		return Listing{}, err
	}
	defer f.close()
	sessions, err := r.list(ctx, f, whole)
	return Listing{Sessions: sessions, Backups: f.backups()}, err
}

// HeaderViewer is implemented by drivers that have to open a view to read a
// header.
type HeaderViewer interface{ HeaderIsView() bool }

func (r *Repo) headerIsView(ref Ref) bool {
	d, err := r.driver(ref.Backend)
	if err != nil {
		return false
	}
	h, ok := d.(HeaderViewer)
	return ok && h.HeaderIsView()
}

func (r *Repo) list(ctx context.Context, f *folder, whole func(Ref) bool) ([]Listed, error) {
	var stores []Ref
	var cached map[string]*catalogRow
	var err error
	parts := []func(){
		func() { cached = r.catalog().load() },
		func() { stores, err = r.storesAmong(ctx, f) },
	}
	if each(len(parts), func(i int) { parts[i]() }); err != nil {
		return nil, err
	}
	listed := make([]Listed, len(stores))
	rows := make([]*catalogRow, len(stores))
	each(len(stores), func(i int) {
		if ctx.Err() != nil {
			return
		}
		name := filepath.Base(stores[i].Path)
		now, stable := f.stamp(name)
		if listed[i] = listedAs(stores[i], now, stable, cached[name]); listed[i].Summary != nil {
			return
		}
		if whole(stores[i]) {
			var h Header
			if rows[i], h = r.look(ctx, &listed[i]); listed[i].Summary != nil {
				listed[i].Header, listed[i].Ref.ID = h, h.ID
				return
			}
		}
		listed[i] = r.inspect(ctx, listed[i])
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.catalog().add(rows)
	markDuplicates(listed)
	return listed, nil
}

// listedAs is what the catalog knows of a session as it is now, without a summary
// when that is nothing.
func listedAs(ref Ref, now stamp, stable bool, row *catalogRow) Listed {
	if !stable {
		return Listed{Ref: ref, ModTime: modTime(ref.Path)} // a link, or no file at all
	}
	l := Listed{Ref: ref, ModTime: now.modTime()}
	if time.Since(l.ModTime) >= settled {
		l.stamp = now
	}
	if row != nil && now == row.stamp {
		l.Ref.ID, l.Header, l.Summary = row.header.ID, row.header, row.summary
	}
	return l
}

// inspect completes what is not known with the session's header.
func (r *Repo) inspect(ctx context.Context, l Listed) Listed {
	l.Err = nil
	h, err := r.Header(ctx, l.Ref)
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
// well: the one that is named after the id counts, then the one with the higher
// generation, which an interrupted move has made of the other, then the first.
func markDuplicates(listed []Listed) {
	first := make(map[string]int, len(listed))
	for i, l := range listed {
		j, seen := first[l.Ref.ID]
		switch {
		case l.Err != nil:
		case !seen:
			first[l.Ref.ID] = i
		case outranks(l, listed[j]):
			first[l.Ref.ID] = i
			listed[j].Err = duplicate(l.Ref)
		default:
			listed[i].Err = duplicate(listed[j].Ref)
		}
	}
}

func outranks(a, b Listed) bool {
	if x, y := namedAfter(a.Ref), namedAfter(b.Ref); x != y {
		return x
	}
	return a.Header.Generation > b.Header.Generation
}

func namedAfter(ref Ref) bool {
	return strings.HasPrefix(filepath.Base(ref.Path), ref.ID+".")
}

func duplicate(of Ref) error {
	return fmt.Errorf("session %s is also in %s: %w", of.ID, of.Path, ErrExists)
}
