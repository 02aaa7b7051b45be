package subsession

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// graveyard is the folder of the tombstones in a repository.
const graveyard = ".tombstones"

// tombstoneVersion is the version of the tombstones that this binary writes.
const tombstoneVersion = 1

// Tombstone is what a deletion leaves of a session: who its children were, how
// far its generations went, and what it had cost. It never holds content. Beside
// a session that lives it only raises floors.
type Tombstone struct {
	V               int64         `json:"v"`
	ID              string        `json:"id"`
	DeletedAt       int64         `json:"deletedAt"` // Unix ms
	CascadeID       string        `json:"cascadeId"`
	Root            string        `json:"root"`
	SpawnParent     *string       `json:"spawnParent"`
	GenerationFloor int64         `json:"generationFloor"`
	StoreGeneration int64         `json:"storeGeneration"` // of the whole store (D57)
	LocalChildren   []string      `json:"localChildren"`
	RemoteChildren  []string      `json:"remoteChildren"`
	UsageTotals     message.Usage `json:"usageTotals"`
	MessageCount    int64         `json:"messageCount"`
}

// Tombstones are those of one repository.
type Tombstones struct {
	Dir string // the repository's folder
	FS  fsx.FS // nil means the real one
}

func (t Tombstones) fs() fsx.FS {
	if t.FS == nil {
		return fsx.OS{}
	}
	return t.FS
}

func (t Tombstones) folder() string { return filepath.Join(t.Dir, graveyard) }

func (t Tombstones) path(id string) string { return filepath.Join(t.folder(), id+".json") }

// Read returns the tombstone of an id, nil when there is none. It fails with
// *store.Corrupt, *store.NewerVersion, or what the system says.
func (t Tombstones) Read(id string) (*Tombstone, error) {
	if err := store.CheckID(id); err != nil {
		return nil, err
	}
	path := t.path(id)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read tombstone: %w", err)
	}
	s := &Tombstone{}
	switch err := json.Unmarshal(raw, s); {
	case err != nil:
		return nil, &store.Corrupt{Path: path, Offset: -1, Msg: "no tombstone: " + err.Error()}
	case s.V > tombstoneVersion:
		return nil, &store.NewerVersion{Path: path, Found: s.V, Supported: tombstoneVersion}
	case s.ID != id || s.V < 1 || s.GenerationFloor < 0:
		return nil, &store.Corrupt{Path: path, Offset: -1, Msg: "no tombstone of session " + id}
	}
	return s, nil
}

// Write merges a tombstone with the one that is there, floors rising and children
// adding up, and returns when the result survives power loss.
func (t Tombstones) Write(s Tombstone) error {
	old, err := t.Read(s.ID)
	if err != nil {
		return err
	}
	if old != nil {
		s.GenerationFloor = max(s.GenerationFloor, old.GenerationFloor)
		s.StoreGeneration = max(s.StoreGeneration, old.StoreGeneration)
		s.LocalChildren = append(s.LocalChildren, old.LocalChildren...)
		s.RemoteChildren = append(s.RemoteChildren, old.RemoteChildren...)
	}
	s.V = tombstoneVersion
	s.LocalChildren, s.RemoteChildren = distinct(s.LocalChildren), distinct(s.RemoteChildren)
	if err := t.makeFolder(); err != nil {
		return err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write tombstone of session %s: %w", s.ID, err)
	}
	err = fsx.Replace(t.fs(), t.path(s.ID), fsx.ReplaceOptions{Existing: true}, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
	if err != nil {
		return fmt.Errorf("write tombstone of session %s: %w", s.ID, err)
	}
	return nil
}

func (t Tombstones) makeFolder() error {
	err := os.Mkdir(t.folder(), 0o700)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return fmt.Errorf("make the folder of tombstones: %w", err)
	}
	return t.fs().SyncDir(t.Dir)
}

// distinct sorts ids and leaves out those that are there twice; it is never nil.
func distinct(ids []string) []string {
	ids = append([]string{}, ids...)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Found is one tombstone of a repository, or why it cannot be read.
type Found struct {
	ID        string
	Tombstone *Tombstone
	Err       error
}

// List returns the tombstones in the order of their ids.
func (t Tombstones) List() ([]Found, error) {
	files, err := os.ReadDir(t.folder())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list tombstones: %w", err)
	}
	var all []Found
	for _, f := range files {
		id, ok := strings.CutSuffix(f.Name(), ".json")
		if !ok || !f.Type().IsRegular() || store.CheckID(id) != nil {
			continue
		}
		s, err := t.Read(id)
		if s == nil && err == nil {
			continue // purged meanwhile
		}
		all = append(all, Found{ID: id, Tombstone: s, Err: err})
	}
	return all, nil
}

// sweep removes the temporary files of tombstones that killed deletions were
// writing, of the sessions that are done with.
func (t Tombstones) sweep(done map[string]bool) {
	files, err := os.ReadDir(t.folder())
	if err != nil {
		return // there is nothing to sweep, or the next run sees to it
	}
	for _, f := range files {
		target, ok := fsx.TempTarget(f.Name())
		if id, named := strings.CutSuffix(target, ".json"); ok && named && done[id] {
			_ = t.fs().Remove(filepath.Join(t.folder(), f.Name()))
		}
	}
}

// Purge removes a tombstone: the floors and remote exclusions that it kept are
// lost. One that is not there is no error.
func (t Tombstones) Purge(id string) error {
	if err := store.CheckID(id); err != nil {
		return err
	}
	if err := t.fs().Remove(t.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("purge tombstone: %w", err)
	}
	return nil
}

// Past is what the deleted sessions of an id left for the next one: store.Repo
// asks for it when a session comes into being.
func (t Tombstones) Past(id string) (store.Past, error) {
	s, err := t.Read(id)
	if err != nil || s == nil {
		return store.Past{}, err
	}
	past := store.Past{Generation: s.StoreGeneration}
	if s.GenerationFloor > 0 {
		past.First = store.Tx{Floor().Set(s.GenerationFloor)}
	}
	return past, nil
}
