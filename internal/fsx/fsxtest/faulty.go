// Package fsxtest is a file system that fails on command, for the tests of
// everything that writes files (D21).
package fsxtest

import (
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/drover-run/drover/internal/fsx"
)

// Op names one kind of call that can be made to fail.
type Op string

// The calls. Write is also WriteAt; Read is ReadAt.
const (
	Any      Op = ""
	Open     Op = "open"
	Read     Op = "read"
	Write    Op = "write"
	Sync     Op = "sync"
	Truncate Op = "truncate"
	Close    Op = "close"
	Rename   Op = "rename"
	Link     Op = "link"
	Remove   Op = "remove"
	SyncDir  Op = "syncdir"
	Chmod    Op = "chmod"
)

// Rule makes one call fail.
type Rule struct {
	Op     Op     // Any for all
	Name   string // part of the file's name, "" for all
	Skip   int    // how many matching calls succeed first
	Sticky bool   // later matching calls fail too
	Err    error
	// Short is how many bytes a failing write leaves behind.
	Short int
}

// FS is the real file system with rules. Set Rules before the calls they are
// meant for; the zero value fails nothing.
type FS struct {
	// Lazy leaves the syncs out that do not fail: no power is lost in a test.
	Lazy bool

	mu    sync.Mutex
	rules []*Rule
	calls []string
	hits  []Op
}

// Fail adds a rule.
func (f *FS) Fail(r Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, &r)
}

// Heal removes all rules.
func (f *FS) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// Calls returns the calls made so far, by operation.
func (f *FS) Calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Hits returns the calls that were made to fail.
func (f *FS) Hits() []Op {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.hits)
}

func (f *FS) check(op Op, name string) *Rule {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, string(op))
	for i, r := range f.rules {
		if (r.Op != Any && r.Op != op) || !strings.Contains(name, r.Name) {
			continue
		}
		if r.Skip > 0 {
			r.Skip--
			continue
		}
		f.hits = append(f.hits, op)
		if !r.Sticky {
			f.rules = slices.Delete(f.rules, i, i+1)
		}
		return r
	}
	return nil
}

func (f *FS) fail(op Op, name string) error {
	if r := f.check(op, name); r != nil {
		return &fs.PathError{Op: string(op), Path: name, Err: r.Err}
	}
	return nil
}

// OpenFile opens a file whose later calls follow the rules too.
func (f *FS) OpenFile(name string, flag int, perm fs.FileMode) (fsx.File, error) {
	if err := f.fail(Open, name); err != nil {
		return nil, err
	}
	file, err := fsx.OS{}.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &faultyFile{File: file, fs: f, name: name}, nil
}

// Rename renames unless a rule forbids it.
func (f *FS) Rename(oldName, newName string) error {
	if err := f.fail(Rename, newName); err != nil {
		return err
	}
	return fsx.OS{}.Rename(oldName, newName)
}

// RenameNew counts as Rename.
func (f *FS) RenameNew(oldName, newName string) error {
	if err := f.fail(Rename, newName); err != nil {
		return err
	}
	return fsx.OS{}.RenameNew(oldName, newName)
}

// Link links unless a rule forbids it.
func (f *FS) Link(oldName, newName string) error {
	if err := f.fail(Link, newName); err != nil {
		return err
	}
	return fsx.OS{}.Link(oldName, newName)
}

// Remove removes unless a rule forbids it.
func (f *FS) Remove(name string) error {
	if err := f.fail(Remove, name); err != nil {
		return err
	}
	return fsx.OS{}.Remove(name)
}

// SyncDir syncs unless a rule forbids it.
func (f *FS) SyncDir(name string) error {
	if err := f.fail(SyncDir, name); err != nil {
		return err
	}
	if f.Lazy {
		return nil
	}
	return fsx.OS{}.SyncDir(name)
}

type faultyFile struct {
	fsx.File
	fs   *FS
	name string
}

func (f *faultyFile) ReadAt(b []byte, off int64) (int, error) {
	if err := f.fs.fail(Read, f.name); err != nil {
		return 0, err
	}
	return f.File.ReadAt(b, off)
}

func (f *faultyFile) write(b []byte, do func([]byte) (int, error)) (int, error) {
	r := f.fs.check(Write, f.name)
	if r == nil {
		return do(b)
	}
	n, err := do(b[:min(r.Short, len(b))])
	if err == nil {
		err = &fs.PathError{Op: "write", Path: f.name, Err: r.Err}
	}
	return n, err
}

func (f *faultyFile) Write(b []byte) (int, error) { return f.write(b, f.File.Write) }

func (f *faultyFile) WriteAt(b []byte, off int64) (int, error) {
	return f.write(b, func(b []byte) (int, error) { return f.File.WriteAt(b, off) })
}

func (f *faultyFile) Sync() error {
	if err := f.fs.fail(Sync, f.name); err != nil {
		return err
	}
	if f.fs.Lazy {
		return nil
	}
	return f.File.Sync()
}

func (f *faultyFile) Truncate(size int64) error {
	if err := f.fs.fail(Truncate, f.name); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *faultyFile) Chmod(mode fs.FileMode) error {
	if err := f.fs.fail(Chmod, f.name); err != nil {
		return err
	}
	return f.File.Chmod(mode)
}

// Close always closes, whatever it reports.
func (f *faultyFile) Close() error {
	err := f.fs.fail(Close, f.name)
	if closeErr := f.File.Close(); err == nil {
		err = closeErr
	}
	return err
}
