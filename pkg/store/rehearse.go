package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Rehearse does to a copy of a session, in a folder of its own that goes again,
// what opening it would do, and then Move where o names another backend. The
// session itself is only read, also while another process owns it.
func (r *Repo) Rehearse(ctx context.Context, ref Ref, o MoveOptions) error {
	dir, err := os.MkdirTemp("", "drover-rehearsal-")
	if err == nil {
		err = errors.Join(r.rehearse(ctx, dir, ref, o), os.RemoveAll(dir))
	}
	if err != nil {
		return fmt.Errorf("rehearse on session %s: %w", ref.ID, err)
	}
	return nil
}

func (r *Repo) rehearse(ctx context.Context, dir string, ref Ref, o MoveOptions) error {
	d, err := r.driver(ref.Backend)
	if err == nil && o.Backend != "" && o.Backend != ref.Backend {
		err = r.room(ref, o)
	}
	if err != nil {
		return err
	}
	copied := Ref{ID: ref.ID, Path: filepath.Join(dir, "copy"+d.Ext()), Backend: ref.Backend}
	v, err := r.stored(ctx, ref)
	if err != nil {
		return err
	}
	snap, err := v.Snapshot(ctx)
	if err == nil {
		err = errors.Join(d.Build(ctx, copied.Path, snap, BuildOptions{NoSync: true}), snap.Close())
	}
	if err := errors.Join(err, v.Close()); err != nil {
		return err
	}
	options := r.o
	options.Dir, options.Open.Socket = dir, nil
	stage, err := NewRepo(options)
	if err != nil {
		return err
	}
	s, err := stage.Open(ctx, copied)
	if err != nil {
		return err
	}
	err = judgeAs(ctx, s, o.Judge)
	if err := errors.Join(err, s.Close()); err != nil || o.Backend == "" {
		return err
	}
	_, err = stage.Move(ctx, copied, o)
	return err
}

// room wants the names that a move would give to be free.
func (r *Repo) room(ref Ref, o MoveOptions) error {
	d, err := r.driver(o.Backend)
	if err != nil {
		return err
	}
	file, link, err := behind(ref)
	if err == nil && link != nil {
		_, err = r.linkTo(*link, Ref{Path: r.beside(file, d), Backend: d.Name()})
	}
	if err == nil {
		_, err = backupOf(file.Path, o)
	}
	return err
}

func judgeAs(ctx context.Context, r Reader, judge func(context.Context, Reader) error) error {
	if judge == nil {
		return nil
	}
	return judge(ctx, r)
}
