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
// whole. A backup that is there already, of another file, is an error.
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
	s, err := v3import.Read(ctx, target, v3import.Options{Now: o.Now})
	if err != nil {
		return fmt.Errorf("convert %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := keep(target, target+".v3.bak"); err != nil {
		return fmt.Errorf("convert %s: %w", path, err)
	}
	if err := d.put(ctx, target, s.Snapshot(), store.BuildOptions{Replace: true}); err != nil {
		return fmt.Errorf("convert %s: %w", path, err)
	}
	return nil
}

// keep gives the file a second name. One that an attempt before has given
// already is as good.
func keep(path, backup string) error {
	err := os.Link(path, backup)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	now, statErr := os.Stat(path)
	kept, keptErr := os.Stat(backup)
	if statErr == nil && keptErr == nil && os.SameFile(now, kept) {
		return nil
	}
	return err
}
