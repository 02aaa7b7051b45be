package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// MinShortID is the shortest beginning or ending of an id that names a session.
const MinShortID = 6

// NamePrefix begins an argument that names a session by its exact name.
const NamePrefix = "name:"

// Resolve finds the session that an argument means: a full id; name:TEXT, the
// exact name; @last, the one changed last; a path, which contains a slash or
// ends in .db or .jsonl and may lie outside the repository; a unique beginning
// or ending of an id, MinShortID characters at least. A full id wins over every
// other reading (D3) and reads no other session. Files are named after their
// sessions: only where no name fits, headers are asked. It fails with ErrNotFound or
// *Ambiguous.
func (r *Repo) Resolve(ctx context.Context, arg string) (Ref, error) {
	if CheckID(arg) == nil {
		holders, err := r.holders(ctx, arg)
		if err != nil {
			return Ref{}, fmt.Errorf("find session %q: %w", arg, err)
		}
		if len(holders) > 0 {
			var refs []Ref
			for _, d := range holders {
				refs = append(refs, r.ref(ctx, d, r.path(d, arg)))
			}
			return one(arg, r.prevailing(ctx, refs))
		}
	}
	if name, ok := strings.CutPrefix(arg, NamePrefix); ok {
		return r.named(ctx, arg, name)
	}
	switch {
	case arg == "@last":
		return r.latest(ctx)
	case isPath(arg):
		return r.at(ctx, arg)
	}
	found, err := r.abbreviated(ctx, arg)
	if err == nil && len(found) == 0 {
		found, err = r.renamed(ctx, arg)
	}
	if err != nil {
		return Ref{}, err
	}
	return one(arg, r.prevailing(ctx, found))
}

// ResolveView is Resolve, and View of what was found; a session of which the header
// is as much to read as the whole is opened once for both. When it is found and cannot
// be viewed, there are a ref and an error. The caller closes the reader.
func (r *Repo) ResolveView(ctx context.Context, arg string) (Ref, Reader, error) {
	if CheckID(arg) == nil {
		holders, err := r.holders(ctx, arg)
		if err == nil && len(holders) == 1 {
			if ref, v := r.viewByID(ctx, holders[0], arg); v != nil {
				return ref, v, nil
			}
		}
	}
	ref, err := r.Resolve(ctx, arg)
	if err != nil {
		return Ref{}, nil, err
	}
	v, err := r.View(ctx, ref)
	return ref, v, err
}

// viewByID is nil for a session that cannot be viewed, or whose header is less to read.
func (r *Repo) viewByID(ctx context.Context, d Driver, id string) (Ref, Reader) {
	ref := Ref{ID: id, Path: r.path(d, id), Backend: d.Name()}
	if !r.headerIsView(ref) {
		return ref, nil
	}
	v, err := r.View(ctx, ref)
	if err != nil {
		return ref, nil
	}
	ref.ID = v.Header().ID
	return ref, v
}

func isPath(arg string) bool {
	return strings.Contains(arg, "/") || strings.HasSuffix(arg, ".db") || strings.HasSuffix(arg, ".jsonl")
}

// one wants exactly one match.
func one(arg string, refs []Ref) (Ref, error) {
	switch len(refs) {
	case 0:
		return Ref{}, fmt.Errorf("session %q: %w", arg, ErrNotFound)
	case 1:
		return refs[0], nil
	}
	slices.SortStableFunc(refs, func(x, y Ref) int { return modTime(y.Path).Compare(modTime(x.Path)) })
	return Ref{}, &Ambiguous{Arg: arg, Candidates: refs}
}

// stores returns every store of the repository in the order of paths, known by
// its file name alone.
func (r *Repo) stores(ctx context.Context) ([]Ref, error) {
	f, err := r.folder()
	if err != nil {
		return nil, err
	}
	defer f.close()
	return r.storesAmong(ctx, f)
}

// Chooser is implemented by drivers that know their stores among the files of a
// folder, which is then read once for all of them.
type Chooser interface {
	// Choose is List, of a folder that has been read.
	Choose(dir string, files []os.DirEntry) []string
}

func (r *Repo) storesAmong(ctx context.Context, f *folder) ([]Ref, error) {
	var refs []Ref
	for _, d := range r.o.Drivers {
		paths, err := f.storesOf(ctx, d)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("list %s sessions: %w", d.Name(), err)
		}
		for _, p := range paths {
			refs = append(refs, Ref{ID: stem(d, p), Path: p, Backend: d.Name()})
		}
	}
	return f.eachOnce(merge(refs, r.irregular(f.files))), nil
}

// irregular returns what is named like a store and is no file: a folder, a FIFO,
// a link to nothing. No driver lists these, and none may vanish.
func (r *Repo) irregular(files []os.DirEntry) []Ref {
	var refs []Ref
	for _, f := range files {
		if f.Type().IsRegular() || strings.HasPrefix(f.Name(), ".") {
			continue
		}
		for _, d := range r.o.Drivers {
			path := filepath.Join(r.o.Dir, f.Name())
			if strings.HasSuffix(path, d.Ext()) && regular(path) != nil {
				refs = append(refs, Ref{ID: stem(d, path), Path: path, Backend: d.Name()})
			}
		}
	}
	return refs
}

// merge gives the refs of both, each path once, in the order of paths.
func merge(a, b []Ref) []Ref {
	all := append(a, b...)
	slices.SortFunc(all, func(x, y Ref) int { return strings.Compare(x.Path, y.Path) })
	return slices.CompactFunc(all, func(x, y Ref) bool { return x.Path == y.Path })
}

func stem(d Driver, path string) string { return strings.TrimSuffix(filepath.Base(path), d.Ext()) }

// TooShort tells whether an argument of Resolve could only be a beginning or
// ending of an id, and has too few characters for one.
func TooShort(arg string) bool {
	return len(arg) < MinShortID && !isPath(arg) && !strings.HasPrefix(arg, NamePrefix) && arg != "@last"
}

// abbreviated finds sessions by what their files are named after.
func (r *Repo) abbreviated(ctx context.Context, arg string) ([]Ref, error) {
	if len(arg) < MinShortID {
		return nil, nil
	}
	stores, err := r.stores(ctx)
	if err != nil {
		return nil, err
	}
	var refs []Ref
	for _, s := range stores {
		if abbreviates(arg, s.ID) {
			refs = append(refs, r.refOf(ctx, s))
		}
	}
	return refs, nil
}

// renamed finds sessions whose files have other names than their ids, as a list tells
// them. The catalog keeps what has to be read for that.
func (r *Repo) renamed(ctx context.Context, arg string) ([]Ref, error) {
	listing, err := r.ListFolder(ctx, ListSummaries)
	if err != nil {
		return nil, err
	}
	var full, short []Ref
	for _, l := range listing.Sessions {
		switch {
		case l.Ref.ID == arg:
			full = append(full, l.Ref)
		case len(arg) >= MinShortID && abbreviates(arg, l.Ref.ID):
			short = append(short, l.Ref)
		}
	}
	if len(full) > 0 {
		return full, nil
	}
	return short, nil
}

func abbreviates(arg, id string) bool {
	return strings.HasPrefix(id, arg) || strings.HasSuffix(id, arg)
}

func (r *Repo) latest(ctx context.Context) (Ref, error) {
	stores, err := r.stores(ctx)
	if err != nil {
		return Ref{}, err
	}
	var last Ref
	var when time.Time
	for _, s := range stores {
		if t := modTime(s.Path); last.Path == "" || !t.Before(when) {
			last, when = s, t
		}
	}
	if last.Path == "" {
		return one("@last", nil)
	}
	var files []Ref
	for _, s := range stores {
		if s.ID == last.ID {
			files = append(files, r.refOf(ctx, s))
		}
	}
	return one("@last", r.prevailing(ctx, files))
}

// modTime is when the store was last written: the file, or the log beside it
// that holds what SQLite has not moved into the file yet. A link's is that of the
// file it leads to. The zero time is a store that is no file.
func modTime(path string) time.Time {
	var t time.Time
	fi, err := os.Lstat(path)
	if err == nil && fi.Mode()&fs.ModeSymlink != 0 {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			fi, err = os.Lstat(path)
		}
	}
	if err != nil || !fi.Mode().IsRegular() {
		return t
	}
	t = fi.ModTime()
	// A reader may leave an empty log behind; that is no change (D10).
	if fi, err := os.Stat(path + logSuffix); err == nil && fi.Size() > 0 && fi.ModTime().After(t) {
		t = fi.ModTime()
	}
	return t
}

// named reads every session's name. Unreadable sessions have none.
func (r *Repo) named(ctx context.Context, arg, name string) (Ref, error) {
	stores, err := r.stores(ctx)
	if err != nil {
		return Ref{}, err
	}
	var refs []Ref
	unreadable := 0
	for _, s := range stores {
		ref := r.refOf(ctx, s)
		got, ok, err := r.nameOf(ctx, ref)
		switch {
		case ctx.Err() != nil:
			return Ref{}, ctx.Err()
		case err != nil:
			unreadable++
		case ok && got == name:
			refs = append(refs, ref)
		}
	}
	if len(refs) == 0 && unreadable > 0 {
		return Ref{}, fmt.Errorf("session %q: %w (%d sessions could not be read)", arg, ErrNotFound, unreadable)
	}
	return one(arg, r.prevailing(ctx, refs))
}

func (r *Repo) nameOf(ctx context.Context, ref Ref) (string, bool, error) {
	v, err := r.View(ctx, ref)
	if err != nil {
		return "", false, err
	}
	defer v.Close()
	return text(ctx, v, SessionName())
}

// at names the session of a file, whatever folder it lies in.
func (r *Repo) at(ctx context.Context, arg string) (Ref, error) {
	path, err := filepath.Abs(arg)
	if err != nil {
		return Ref{}, fmt.Errorf("find session %q: %w", arg, err)
	}
	if _, err := os.Stat(path); err != nil {
		return Ref{}, fmt.Errorf("session %q: %w", arg, missing(err))
	}
	if err := regular(path); err != nil {
		return Ref{}, err // before looking into it
	}
	d, err := r.driver(backendOf(path))
	if err != nil {
		return Ref{}, fmt.Errorf("session %q: %w", arg, err)
	}
	return r.ref(ctx, d, path), nil
}

// sqliteMagic begins every SQLite database.
const sqliteMagic = "SQLite format 3\x00"

// backendOf judges a file by its name, and by its content where that says
// nothing. Only then is it opened, and never beside SQLite's shared memory: to
// close any descriptor of a database drops the locks that an owner in this
// process holds on it.
func backendOf(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = path
	}
	for _, name := range []string{path, real} {
		switch {
		case strings.HasSuffix(name, ".db"):
			return "sqlite"
		case strings.HasSuffix(name, ".jsonl"):
			return "jsonl"
		}
	}
	if _, err := os.Lstat(real + "-shm"); err == nil || peek(real, len(sqliteMagic)) == sqliteMagic {
		return "sqlite"
	}
	return "jsonl"
}

// peek returns the beginning of a file, nothing when it cannot be read.
func peek(path string, n int) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, n)
	got, _ := io.ReadFull(f, head)
	return string(head[:got])
}

// ref names the store at a path. A header that cannot be read leaves the name
// of the file for an id: the damage is for whoever opens it.
func (r *Repo) ref(ctx context.Context, d Driver, path string) Ref {
	return r.refOf(ctx, Ref{ID: stem(d, path), Path: path, Backend: d.Name()})
}

func (r *Repo) refOf(ctx context.Context, ref Ref) Ref {
	h, err := r.Header(ctx, ref)
	var legacy *Legacy
	ref.Legacy = errors.As(err, &legacy)
	if err == nil {
		ref.ID = h.ID
	}
	return ref
}

// regular refuses what is there but is no file: opening a FIFO would wait.
func regular(path string) error {
	fi, err := os.Stat(path)
	if err != nil {
		if _, linkErr := os.Lstat(path); linkErr == nil {
			return fmt.Errorf("read %s: %w", path, err) // a link to nothing
		}
		return nil // no file at all: the driver's own business
	}
	if !fi.Mode().IsRegular() {
		return &Corrupt{Path: path, Offset: -1, Msg: "not a regular file"}
	}
	return nil
}
