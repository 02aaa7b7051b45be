package store

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
)

// Conversion maps what is stored at one key of a namespace, a value or one
// element of a list, to what the next storage version stores there. What has been
// converted already it returns as it is; nil deletes, and of a list every element
// or none (spec §7.4). The result has no insignificant white space.
type Conversion func(key string, stored json.RawMessage) (json.RawMessage, error)

// Migration takes a session from the storage version before To to To (spec §7.3).
// What it has no conversion for stays as it is, byte for byte, so that nothing
// unknown is lost; sequence numbers stay everywhere.
type Migration struct {
	To      int64
	Name    string // what it changes, for people
	Convert map[string]Conversion
}

// Migrations is a chain: one for every storage version after the first, in order.
type Migrations []Migration

// Migrator is implemented by owned backends that can take their session to a newer
// storage version.
type Migrator interface {
	// Migrate runs the steps in order. After an error or a crash the session stands
	// complete at the version of one of them, or at its own, and can be migrated
	// again from there.
	Migrate(ctx context.Context, steps []Migration) error
}

// After gives the steps that a session of a version lacks. It fails with
// *OlderVersion, which names path, where the chain does not lead to StorageVersion.
func (m Migrations) After(path string, version int64) ([]Migration, error) {
	var steps []Migration
	at := version
	for _, step := range m {
		if step.To == at+1 {
			steps = append(steps, step)
			at = step.To
		}
	}
	if at < StorageVersion {
		return nil, &OlderVersion{Path: path, Found: version, Supported: StorageVersion}
	}
	return steps, nil
}

// Migrated is a snapshot as the steps leave it. It is closed with the old one.
func Migrated(old *Snapshot, steps []Migration) *Snapshot {
	next := *old
	for _, step := range steps {
		next.Header.StorageVersion = step.To
	}
	next.Records = convertAll(old.Records, steps)
	if old.Outline != nil {
		next.Outline = convertAll(old.Outline, steps)
	}
	if old.Judged != nil {
		next.Judged = convertAll(old.Judged, steps)
	}
	return &next
}

func convertAll(records iter.Seq2[Record, error], steps []Migration) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for r, err := range records {
			if err == nil && (r.Kind == KindValue || r.Kind == KindList) {
				if r.Value, err = convert(r.Address, r.Value, steps); err == nil && r.Value == nil {
					continue
				}
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func convert(a Address, stored json.RawMessage, steps []Migration) (_ json.RawMessage, err error) {
	for _, step := range steps {
		if stored, err = step.Apply(a, stored); err != nil || stored == nil {
			return nil, err
		}
	}
	return stored, nil
}

// Apply converts what is stored at an address. It fails with *Corrupt: what this
// drover cannot convert has a shape that no drover wrote.
func (m Migration) Apply(a Address, stored json.RawMessage) (json.RawMessage, error) {
	conversion := m.Convert[a.Namespace]
	if conversion == nil {
		return stored, nil
	}
	next, err := conversion(a.Key, stored)
	if err != nil {
		return nil, &Corrupt{Offset: -1, Msg: fmt.Sprintf("%s cannot be migrated to storage version %d: %v", a, m.To, err)}
	}
	return next, nil
}

// migrate brings an owned session to the current version before anybody uses it
// (spec §2.8).
func (r *Repo) migrate(ctx context.Context, path string, b Backend) error {
	version := b.Header().StorageVersion
	if version >= StorageVersion {
		return nil
	}
	steps, err := r.o.Migrations.After(path, version)
	if err != nil {
		return err
	}
	m, ok := b.(Migrator)
	if !ok {
		return &OlderVersion{Path: path, Found: version, Supported: StorageVersion}
	}
	return m.Migrate(ctx, steps)
}

// current lets a reader see an older session as its migration will leave it (D9).
func (r *Repo) current(path string, stored Reader) (Reader, error) {
	version := stored.Header().StorageVersion
	if version >= StorageVersion {
		return stored, nil
	}
	steps, err := r.o.Migrations.After(path, version)
	if err != nil {
		return nil, err
	}
	return overlay{stored, steps}, nil
}

// overlay reads an older session through its migration. Its header says what the
// store says.
type overlay struct {
	Reader
	steps []Migration
}

func (o overlay) Value(ctx context.Context, addr Address) (StoredValue, bool, error) {
	v, ok, err := o.Reader.Value(ctx, addr)
	if err != nil || !ok {
		return v, ok, err
	}
	v.Value, err = convert(addr, v.Value, o.steps)
	if err != nil || v.Value == nil {
		return StoredValue{}, false, err
	}
	return v, true, nil
}

func (o overlay) ScanValues(ctx context.Context, prefix Address) ([]StoredValue, error) {
	stored, err := o.Reader.ScanValues(ctx, prefix)
	if err != nil {
		return nil, err
	}
	kept := stored[:0]
	for _, v := range stored {
		if v.Value, err = convert(v.Address, v.Value, o.steps); err != nil {
			return nil, err
		}
		if v.Value != nil {
			kept = append(kept, v)
		}
	}
	return kept, nil
}

func (o overlay) ReadList(ctx context.Context, addr Address, q ListQuery) ([]ListElement, error) {
	stored, err := o.Reader.ReadList(ctx, addr, q)
	if err != nil {
		return nil, err
	}
	kept := stored[:0]
	for _, e := range stored {
		if e.Value, err = convert(addr, e.Value, o.steps); err != nil {
			return nil, err
		}
		if e.Value != nil {
			kept = append(kept, e)
		}
	}
	return kept, nil
}

func (o overlay) Snapshot(ctx context.Context) (*Snapshot, error) {
	snap, err := o.Reader.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return Migrated(snap, o.steps), nil
}

// Problems are those of the store's own encoding.
func (o overlay) Problems(ctx context.Context) iter.Seq[Problem] {
	if c, ok := o.Reader.(Checker); ok {
		return c.Problems(ctx)
	}
	return func(func(Problem) bool) {}
}
