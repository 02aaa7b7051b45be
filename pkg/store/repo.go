package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// RepoOptions describe a repository.
type RepoOptions struct {
	// Dir is the folder of the sessions; it is made, mode 0700, when the first
	// one is written.
	Dir string
	// Drivers are the encodings the repository knows; the first is the default.
	Drivers []Driver
	// Open governs every owning open.
	Open OpenOptions
	// Migrations take older sessions to StorageVersion: those that are opened, in
	// their store; those that are viewed, in memory. Without one an older session
	// is *OlderVersion.
	Migrations Migrations
	// IDs makes the id source of one session; nil means UUIDv7s of Now.
	IDs func() IDSource
	// Now is the clock, Unix ms; nil means the system's.
	Now func() int64
	// Past tells what the deleted sessions of an id left for the next one; nil
	// knows of none.
	Past func(id string) (Past, error)
}

// Repo finds, creates, opens and deletes the sessions of one folder (spec
// §2.8). A session is one file, ID.EXT, and has at most one open owner. All
// methods are safe for concurrent use.
type Repo struct {
	o         RepoOptions
	untouched bool
	swept     sync.Once

	mu    sync.Mutex
	taken map[string]bool // paths that are open or being written by this Repo
}

// NewRepo describes a repository; it touches no file.
func NewRepo(o RepoOptions) (*Repo, error) {
	if len(o.Drivers) == 0 {
		return nil, errors.New("repository has no storage driver")
	}
	if o.Dir != "" {
		dir, err := filepath.Abs(o.Dir)
		if err != nil {
			return nil, fmt.Errorf("locate repository: %w", err)
		}
		o.Dir = dir
	}
	if o.Now == nil {
		o.Now = SystemNow
	}
	if o.Open.Now == nil {
		o.Open.Now = o.Now
	}
	if o.IDs == nil {
		o.IDs = func() IDSource { return NewIDs(o.Now, nil) }
	}
	return &Repo{o: o, taken: make(map[string]bool)}, nil
}

// Untouched is the repository for somebody who only looks and must not change a
// byte of the folder: what lists learn is not kept.
func (r *Repo) Untouched() *Repo {
	return &Repo{o: r.o, untouched: true, taken: make(map[string]bool)}
}

// Dir returns the absolute path of the repository's folder.
func (r *Repo) Dir() string { return r.o.Dir }

// CreateOptions describe a new session.
type CreateOptions struct {
	ID              string // "" mints one
	Name            string // "" is none
	CWD             string
	Backend         string // a driver's name, "" for the default
	ParentSessionID string
	Spawn           json.RawMessage
	Config          *LaneConfiguration // of main; nil leaves it unconfigured
}

// Create makes a session whose lane main has a null leaf and an idle state, and
// returns it open (spec §2.8). The header and these values appear together or
// not at all. It fails with *InvalidID, or with ErrExists when any encoding of
// the repository has a session of that id.
func (r *Repo) Create(ctx context.Context, o CreateOptions) (*Session, Ref, error) {
	ids := r.o.IDs()
	if o.ID == "" {
		o.ID = ids.NewID()
	}
	snap, err := r.initial(o)
	if err != nil {
		return nil, Ref{}, fmt.Errorf("create session %s: %w", o.ID, err)
	}
	ref, release, err := r.write(ctx, snap, ImportOptions{Backend: o.Backend})
	if err != nil {
		return nil, Ref{}, fmt.Errorf("create session %s: %w", o.ID, err)
	}
	s, err := r.serve(ctx, ref, ids, release)
	if err != nil {
		err = errors.Join(err, r.discard(ctx, ref))
		release()
		return nil, Ref{}, err
	}
	return s, ref, nil
}

// discard removes a store that was written for nothing, also when ctx has ended.
func (r *Repo) discard(ctx context.Context, ref Ref) error {
	_, err := ask(r, ref, "discard", func(d Driver) (struct{}, error) {
		return struct{}{}, d.Delete(context.WithoutCancel(ctx), ref.Path, r.o.Open)
	})
	return err
}

// initial is the content of a new session.
func (r *Repo) initial(o CreateOptions) (*Snapshot, error) {
	now := r.o.Now()
	tx := laneTx(MainLane, "", o.Config)
	if o.Name != "" {
		tx = append(tx, SessionName().Set(o.Name))
	}
	records, _, err := Prepare(tx, Base{NextSeq: 1, Now: now})
	if err != nil {
		return nil, err
	}
	return NewSnapshot(Header{
		ID: o.ID, StorageVersion: StorageVersion, CreatedAt: now, CWD: o.CWD,
		ParentSessionID: o.ParentSessionID, Spawn: o.Spawn, Generation: 1,
	}, records), nil
}

// ImportOptions govern the writing of a prepared session.
type ImportOptions struct {
	Backend string // a driver's name, "" for the default
	// Replace replaces a session of the same id, in the encoding that it has
	// unless Backend names another; its generation goes up by one.
	Replace bool
	// Judge, if set, looks at each sound session that would be replaced, while it is
	// owned. Its error keeps what is there. It does not close the reader.
	Judge func(ctx context.Context, old Reader) error
}

// Import writes a whole prepared session. Without Replace an id that any
// encoding of the repository has is ErrExists; a replaced one may not be open
// anywhere. The caller closes the snapshot.
func (r *Repo) Import(ctx context.Context, snap *Snapshot, o ImportOptions) (Ref, error) {
	ref, release, err := r.write(ctx, snap, o)
	if err != nil {
		return Ref{}, fmt.Errorf("import session %s: %w", snap.Header.ID, err)
	}
	release()
	return ref, nil
}

// write reserves the id in every encoding and writes the store. The caller
// releases the reservation.
func (r *Repo) write(ctx context.Context, snap *Snapshot, o ImportOptions) (Ref, func(), error) {
	return r.writeFrom(ctx, snap.Header.ID, o, func() (*Snapshot, error) {
		kept := *snap
		kept.Close = func() error { return nil } // the caller's
		return &kept, nil
	})
}

// writeFrom is write for content that is only read once its id is reserved; it
// closes the snapshot.
func (r *Repo) writeFrom(ctx context.Context, id string, o ImportOptions, source func() (*Snapshot, error)) (Ref, func(), error) {
	if err := CheckID(id); err != nil {
		return Ref{}, nil, err
	}
	d, err := r.driver(o.Backend)
	if err != nil {
		return Ref{}, nil, err
	}
	var paths []string
	for _, d := range r.o.Drivers {
		paths = append(paths, r.path(d, id))
	}
	if !r.claim(paths...) {
		return Ref{}, nil, collision(o)
	}
	old, err := r.holders(ctx, id)
	if err == nil {
		if o.Backend == "" && len(old) > 0 {
			d = old[0]
		}
		err = r.put(ctx, d, old, source, o)
	}
	if err != nil {
		r.release(paths...)
		return Ref{}, nil, err
	}
	return Ref{ID: id, Path: r.path(d, id), Backend: d.Name()}, func() { r.release(paths...) }, nil
}

// put writes the store in d, in place of the stores that old has.
func (r *Repo) put(ctx context.Context, d Driver, old []Driver, source func() (*Snapshot, error), o ImportOptions) error {
	if len(old) > 0 && !o.Replace {
		return ErrExists
	}
	snap, err := source()
	if err != nil {
		return err
	}
	// Once it has been read, its closing says nothing about what was written.
	defer func() { _ = snap.Close() }()
	next, err := r.successor(ctx, snap, old, o.Judge)
	if err == nil && len(old) == 0 {
		err = r.inherit(next)
	}
	if err != nil {
		return err
	}
	if r.o.Dir != "" {
		if err := os.MkdirAll(r.o.Dir, 0o700); err != nil {
			return fmt.Errorf("make repository: %w", err)
		}
		r.sweep(ctx)
		defer r.making()()
	}
	if err := d.Build(ctx, r.path(d, next.Header.ID), next, BuildOptions{Replace: o.Replace}); err != nil {
		return err
	}
	return r.retire(ctx, d, old, next.Header.ID)
}

func collision(o ImportOptions) error {
	if o.Replace {
		return ErrOpen
	}
	return ErrExists
}

// successor is the snapshot with a generation above those that it replaces. A
// store that somebody owns, that is newer than this binary or that judge refuses is
// not replaced; a damaged one is, and has no generation.
func (r *Repo) successor(ctx context.Context, snap *Snapshot, old []Driver, judge func(context.Context, Reader) error) (*Snapshot, error) {
	next := *snap
	for _, d := range old {
		b, err := d.Open(ctx, r.path(d, snap.Header.ID), r.o.Open)
		var damaged *Corrupt
		if errors.As(err, &damaged) {
			continue
		}
		if err != nil {
			return nil, err
		}
		next.Header.Generation = max(next.Header.Generation, b.Header().Generation+1)
		if judge != nil {
			err = judge(ctx, b)
		}
		if err := errors.Join(err, b.Close()); err != nil {
			return nil, err
		}
	}
	return &next, nil
}

// retire removes the stores that now is in d has replaced.
func (r *Repo) retire(ctx context.Context, now Driver, old []Driver, id string) error {
	for _, d := range old {
		if d == now {
			continue
		}
		if err := d.Delete(ctx, r.path(d, id), r.o.Open); err != nil {
			return fmt.Errorf("remove the replaced %s store: %w", d.Name(), err)
		}
	}
	return nil
}

// holders returns the drivers that have a store of the id, damaged ones too.
func (r *Repo) holders(ctx context.Context, id string) ([]Driver, error) {
	var found []Driver
	for _, d := range r.o.Drivers {
		ok, err := r.exists(ctx, d, r.path(d, id))
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, d)
		}
	}
	return found, nil
}

// Has reports whether the repository has a store of the id in any encoding, also one
// that cannot be read.
func (r *Repo) Has(ctx context.Context, id string) (bool, error) {
	found, err := r.holders(ctx, id)
	return len(found) > 0, err
}

// exists looks at the name first: what lies there need not be readable.
func (r *Repo) exists(ctx context.Context, d Driver, path string) (bool, error) {
	_, err := os.Lstat(path)
	if err == nil {
		return true, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("look for session: %w", err)
	}
	_, err = d.Header(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return true, ctx.Err()
}

func (r *Repo) path(d Driver, id string) string { return filepath.Join(r.o.Dir, id+d.Ext()) }

func (r *Repo) driver(name string) (Driver, error) {
	if name == "" {
		return r.o.Drivers[0], nil
	}
	for _, d := range r.o.Drivers {
		if d.Name() == name {
			return d, nil
		}
	}
	return nil, fmt.Errorf("no storage backend %q", name)
}

// claim reserves all paths or none.
func (r *Repo) claim(paths ...string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range paths {
		if r.taken[p] {
			return false
		}
	}
	for _, p := range paths {
		r.taken[p] = true
	}
	return true
}

func (r *Repo) release(paths ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range paths {
		delete(r.taken, p)
	}
}
