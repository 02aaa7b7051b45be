package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/v3import"
)

// Convert turns the coding-agent file at path into a session of format 4 in its
// place, and keeps the file as it was beside it, as PATH.v3.bak (spec Appendix
// B, D58). It holds the session's lock meanwhile: a file that another process
// converts or owns is *store.Held. A crash leaves the old file or the new one,
// whole; a failure leaves no backup beside the old file. A backup that is there
// already, of another file, is an error.
func (d Driver) Convert(ctx context.Context, path string, o store.OpenOptions) (err error) {
	// The backup belongs beside the file, not beside a link to it.
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("convert %s: %w", path, err)
	}
	lock, err := acquire(ctx, target, o.Wait)
	if err != nil {
		return fmt.Errorf("convert %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if err := d.convert(ctx, target, o); err != nil {
		return fmt.Errorf("convert %s: %w", path, err)
	}
	return nil
}

// convert does it to a file that the caller owns.
func (d Driver) convert(ctx context.Context, path string, o store.OpenOptions) (err error) {
	if err := sweep(d.fs(), path); err != nil {
		return err
	}
	s, err := v3import.Read(ctx, path, v3import.Options{Now: o.Now})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	backup := path + backupSuffix
	if err := d.keep(path, backup); err != nil {
		return err
	}
	if err := d.put(ctx, path, s.Snapshot(), store.BuildOptions{Replace: true}); err != nil {
		return errors.Join(err, d.unkeep(path, backup))
	}
	return nil
}

// backupSuffix follows the name of a converted file in that of the old one.
const backupSuffix = ".v3.bak"

// keep gives the file a second name, and makes it last before the first one is
// taken away. One that an attempt before has given already is as good.
func (d Driver) keep(path, backup string) error {
	err := d.fs().Link(path, backup)
	if errors.Is(err, fs.ErrExist) && sameFile(path, backup) {
		err = nil
	}
	if err != nil {
		return err
	}
	if err := d.fs().SyncDir(filepath.Dir(path)); err != nil {
		return errors.Join(err, d.unkeep(path, backup))
	}
	return nil
}

// unkeep takes the second name away again, unless it is the only one that the
// old file has: left there, it would refuse a conversion of what another program
// writes in the file's place.
func (d Driver) unkeep(path, backup string) error {
	if !sameFile(path, backup) {
		return nil
	}
	return d.fs().Remove(backup)
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
