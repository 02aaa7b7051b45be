package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// MoveOptions describe the move of a session to another encoding.
type MoveOptions struct {
	Backend string // a driver's name
	// Discard removes the old file, which is kept as PATH.bak otherwise.
	Discard bool
	// Judge, if set, looks at the complete new store before it counts. Its error
	// keeps the old one.
	Judge func(ctx context.Context, next Reader) error
}

// Retirer is implemented by owned backends that can be given up for another store
// of the same session.
type Retirer interface {
	// Retire calls succeed with what the session holds, while nobody else can write
	// it and nothing that readers do can keep it from being given up. Then it gives
	// the session's file the name backup, which must be free, or removes it when that
	// is "", and closes the backend. Nothing is left under the old name. After an
	// error the session stands as it was, or is gone as wanted.
	Retire(ctx context.Context, backup string, succeed func(old *Snapshot) error) error
}

// BackupTaken refuses to keep a file under a name that another has.
type BackupTaken struct{ Path string }

func (e *BackupTaken) Error() string { return fmt.Sprintf("%s exists already", e.Path) }

// Move puts a session, migrated where it is older, into another encoding: the same
// records with the same bytes and numbers, one generation later. The new store is
// compared with the old one before it gets its name, which is the moment from which
// it counts: of two files of one session in a folder that is the one with the higher
// generation. Only then the old one is given up. A crash in between leaves both, and
// Move, called again, gives the old one up if the new one has all that it has.
func (r *Repo) Move(ctx context.Context, ref Ref, o MoveOptions) (Ref, error) {
	moved, err := r.move(ctx, ref, o)
	if err != nil {
		return Ref{}, fmt.Errorf("move session %s: %w", ref.ID, err)
	}
	return moved, nil
}

func (r *Repo) move(ctx context.Context, ref Ref, o MoveOptions) (Ref, error) {
	if ref.Legacy {
		return Ref{}, &Legacy{Path: ref.Path}
	}
	d, err := r.driver(o.Backend)
	if err != nil {
		return Ref{}, err
	}
	file, link, err := behind(ref)
	if err != nil {
		return Ref{}, err
	}
	next := Ref{ID: ref.ID, Path: r.beside(file, d), Backend: d.Name()}
	named := next
	if link != nil {
		if named.Path, err = r.linkTo(*link, next); err != nil {
			return Ref{}, err
		}
	}
	var paths []string
	for _, other := range r.o.Drivers {
		paths = append(paths, r.beside(file, other))
		if link != nil {
			paths = append(paths, r.beside(*link, other))
		}
	}
	if !r.claim(paths...) {
		return Ref{}, ErrOpen
	}
	defer r.release(paths...)
	relink := func() error { return r.relink(link, file, next) }
	if ref.Backend != d.Name() {
		there, err := r.exists(ctx, d, next.Path)
		if err == nil && !there {
			err = r.build(ctx, file, next, d, o, relink)
		}
		if err != nil {
			return Ref{}, err
		}
	}
	return named, r.retireOthers(ctx, next, o, relink)
}

// beside is the name of a session's file in another encoding.
func (r *Repo) beside(ref Ref, d Driver) string {
	name := filepath.Base(ref.Path)
	if own, err := r.driver(ref.Backend); err == nil {
		name = strings.TrimSuffix(name, own.Ext())
	}
	return filepath.Join(filepath.Dir(ref.Path), name+d.Ext())
}

// build writes the new store beside the old one, calls built, and gives the old one
// up.
func (r *Repo) build(ctx context.Context, ref, next Ref, d Driver, o MoveOptions, built func() error) error {
	backup, err := backupOf(ref.Path, o)
	if err != nil {
		return err
	}
	b, err := ask(r, ref, "open", func(d Driver) (Backend, error) { return d.Open(ctx, ref.Path, r.o.Open) })
	if err != nil {
		return r.elsewhere(ctx, ref, err)
	}
	err = r.migrate(ctx, ref.Path, b)
	if err == nil {
		err = retire(ctx, b, backup, func(old *Snapshot) error {
			if err := r.copyTo(ctx, old, ref.Path, next.Path, d, o.Judge); err != nil {
				return err
			}
			return built()
		})
	}
	return errors.Join(err, b.Close())
}

func backupOf(path string, o MoveOptions) (string, error) {
	if o.Discard {
		return "", nil
	}
	backup := path + ".bak"
	if _, err := os.Lstat(backup); !errors.Is(err, fs.ErrNotExist) {
		return "", errors.Join(&BackupTaken{Path: backup}, err)
	}
	return backup, nil
}

func retire(ctx context.Context, b Backend, backup string, succeed func(*Snapshot) error) error {
	old, ok := b.(Retirer)
	if !ok {
		return errors.ErrUnsupported
	}
	return old.Retire(ctx, backup, succeed)
}

// copyTo builds the new store of a session that is owned and lies at old.
func (r *Repo) copyTo(ctx context.Context, snap *Snapshot, old, path string, d Driver, judge func(context.Context, Reader) error) error {
	like, err := os.Stat(old)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // an encoding may need no file
		return err
	}
	next := *snap
	next.Header.Generation++
	next.Close = func() error { return nil }
	defer r.making()()
	return d.Build(ctx, path, &next, BuildOptions{Sweep: true, Like: like, Judge: func(ctx context.Context, temp string) error {
		v, err := d.View(ctx, temp)
		if err != nil {
			return err
		}
		err = identical(ctx, snap, v)
		if err == nil {
			err = judgeAs(ctx, v, judge)
		}
		return errors.Join(err, v.Close())
	}})
}

// identical wants a reader to give exactly the records of a snapshot.
func identical(ctx context.Context, want *Snapshot, r Reader) error {
	got, err := r.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer got.Close()
	next, stop := iter.Pull2(got.Records)
	defer stop()
	for w, err := range want.Records {
		if err != nil {
			return err
		}
		g, err, more := next()
		if err != nil {
			return err
		}
		if !more || !sameRecord(w, g) {
			return &Corrupt{Offset: -1, Msg: fmt.Sprintf("the new store differs from the old one at number %d", w.Seq)}
		}
	}
	if g, err, more := next(); more || got.NextSeq != want.NextSeq {
		return errors.Join(err, &Corrupt{Offset: -1, Msg: fmt.Sprintf("the new store has more than the old one at number %d", g.Seq)})
	}
	return nil
}

func sameRecord(a, b Record) bool {
	if a.Kind != b.Kind || a.Op != b.Op || a.Seq != b.Seq || a.Address != b.Address || !bytes.Equal(a.Value, b.Value) {
		return false
	}
	if (a.Entry == nil) != (b.Entry == nil) || (a.Usage == nil) != (b.Usage == nil) {
		return false
	}
	if a.Entry != nil && (a.Entry.Structure != b.Entry.Structure || !bytes.Equal(a.Entry.Payload, b.Entry.Payload)) {
		return false
	}
	x, y := a.Usage, b.Usage
	return x == nil || x.ID == y.ID && x.Seq == y.Seq && x.EntryID == y.EntryID && x.Adjustment == y.Adjustment &&
		bytes.Equal(x.Usage, y.Usage) && bytes.Equal(x.Details, y.Details) && (x.Details == nil) == (y.Details == nil)
}

// retireOthers gives up what interrupted moves to next have left beside it. Before
// that it calls proven.
func (r *Repo) retireOthers(ctx context.Context, next Ref, o MoveOptions, proven func() error) error {
	for _, d := range r.o.Drivers {
		path := r.beside(next, d)
		if d.Name() == next.Backend {
			continue
		}
		there, err := r.exists(ctx, d, path)
		if err == nil && there {
			err = r.retireOld(ctx, Ref{ID: next.ID, Path: path, Backend: d.Name()}, next, o, proven)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Repo) retireOld(ctx context.Context, old, next Ref, o MoveOptions, proven func() error) error {
	backup, err := backupOf(old.Path, o)
	if err != nil {
		return err
	}
	v, err := r.stored(ctx, next)
	if err != nil {
		return err
	}
	b, err := ask(r, old, "open", func(d Driver) (Backend, error) { return d.Open(ctx, old.Path, r.o.Open) })
	if err != nil {
		return errors.Join(err, v.Close())
	}
	err = retire(ctx, b, backup, func(before *Snapshot) error {
		if err := goesOn(ctx, before, v); err != nil {
			return fmt.Errorf("%s and %s: %w", old.Path, next.Path, err)
		}
		return proven()
	})
	return errors.Join(err, b.Close(), v.Close())
}

// goesOn wants next to be what a move made of old, or what became of that: a later
// generation, with every entry and ledger row of the old one.
func goesOn(ctx context.Context, before *Snapshot, next Reader) error {
	was, is := before.Header, next.Header()
	if was.ID != is.ID || was.Generation >= is.Generation {
		return fmt.Errorf("neither is the successor of the other: %w", ErrExists)
	}
	after, err := next.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer after.Close()
	later, stop := iter.Pull2(after.Skeleton())
	defer stop()
	for r, err := range before.Skeleton() {
		if err != nil {
			return err
		}
		for r.Entry != nil || r.Usage != nil {
			l, err, more := later()
			if err != nil {
				return err
			}
			if !more || l.Seq > r.Seq {
				return fmt.Errorf("the older has number %d, which the newer lacks: %w", r.Seq, ErrExists)
			}
			if l.Seq == r.Seq {
				break
			}
		}
	}
	if before.NextSeq > after.NextSeq {
		return fmt.Errorf("the older was written to since: %w", ErrExists)
	}
	return nil
}

// prevailing leaves out what an interrupted move has superseded: of the files of
// one session in one folder the one with the highest generation counts. Without
// one such file, all are left in.
func (r *Repo) prevailing(ctx context.Context, refs []Ref) []Ref {
	var kept []Ref
	for i, ref := range refs {
		superseded := false
		for j, other := range refs {
			superseded = superseded || i != j && r.supersedes(ctx, other, ref)
		}
		if !superseded {
			kept = append(kept, ref)
		}
	}
	return kept
}

func (r *Repo) supersedes(ctx context.Context, a, b Ref) bool {
	if a.ID != b.ID || filepath.Dir(a.Path) != filepath.Dir(b.Path) {
		return false
	}
	x, err := r.Header(ctx, a)
	if err != nil {
		return false
	}
	y, err := r.Header(ctx, b)
	return err == nil && x.Generation > y.Generation
}
