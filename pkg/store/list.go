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
	// Unread tells that nothing was read of the session yet: its id is that of its
	// name. Only ListUnread leaves one so.
	Unread bool

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
	l, err := r.ListFolder(ctx, ListHeaders)
	return l.Sessions, err
}

// Listing is what the repository's folder held at one moment.
type Listing struct {
	Sessions []Listed // as List tells
	// Backups are the paths of the files that earlier replacements kept, in byte
	// order. They are no sessions (D57).
	Backups []string
}

// Depth says how much a list reads of the sessions that the catalog does not know.
type Depth int

// ListHeaders reads headers. The others are for who needs more than that: a session
// whose header costs as much as the whole is summarized at once by ListSummaries, and
// left to ReadUnread by ListUnread.
const (
	ListHeaders Depth = iota
	ListSummaries
	ListUnread
)

// ListFolder is List with the backups, and to any depth. Of files that ListUnread has
// left, none is marked as the second one of an id.
func (r *Repo) ListFolder(ctx context.Context, depth Depth) (Listing, error) {
	f, err := r.folder()
	if err != nil {
		return Listing{}, err
	}
	defer f.close()
	sessions, err := r.list(ctx, f, depth)
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

func (r *Repo) list(ctx context.Context, f *folder, depth Depth) ([]Listed, error) {
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
		switch {
		case depth == ListHeaders || !r.headerIsView(stores[i]):
			listed[i] = r.inspect(ctx, listed[i])
		case depth == ListUnread:
			listed[i].Unread = true
		default:
			rows[i] = r.lookOrInspect(ctx, &listed[i], nil)
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.catalog().add(rows)
	markDuplicates(listed)
	return listed, nil
}

// ReadUnread reads what ListUnread has left, on every core, and keeps the summaries
// for the next time. use, when set, is called with each session that can be read,
// while it is open; from several goroutines. The error is that of ctx.
func (r *Repo) ReadUnread(ctx context.Context, listed []Listed, use func(*Listed, Reader)) error {
	rows := make([]*catalogRow, len(listed))
	each(len(listed), func(i int) {
		if listed[i].Unread && ctx.Err() == nil {
			rows[i] = r.lookOrInspect(ctx, &listed[i], use)
		}
	})
	r.catalog().add(rows)
	markDuplicates(listed)
	return ctx.Err()
}

// lookOrInspect reads the session, or why it cannot be read.
func (r *Repo) lookOrInspect(ctx context.Context, l *Listed, use func(*Listed, Reader)) (keep *catalogRow) {
	l.Unread = false
	row, h := r.look(ctx, l, use)
	if l.Summary == nil {
		*l = r.inspect(ctx, *l)
		return nil
	}
	l.Header, l.Ref.ID = h, h.ID
	return row
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
		case l.Err != nil || l.Unread:
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
