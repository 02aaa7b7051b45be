package repair

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/store"
)

// SalvageOptions say what to read and where to write it.
type SalvageOptions struct {
	From store.Driver
	Path string
	To   store.Driver
	// Out is the file of the new session, which must not exist. Its name without
	// the extension is the id of the new session.
	Out string
	// DryRun writes nothing: what would be kept and what not is told.
	DryRun bool
	Checks []store.Check
	Now    func() int64 // Unix ms
}

// Salvaged is what a salvage kept.
type Salvaged struct {
	ID       string
	Entries  int64
	Usage    int64
	Values   int64
	Elements int64
	Lost     []store.Loss // what was not kept
	Changed  []store.Loss // what was kept with a change, such as another parent
}

// maxRounds bounds how often what the checker refuses is left out.
const maxRounds = 8

// Salvage writes what can be read of a damaged session into a new one, and tells
// everything that was not kept. No content is made up: an entry whose parent is lost
// hangs on its nearest kept ancestor, or is a root where that is not known; a
// lane whose leaf is lost goes back in the same way, and where no ancestor is known
// it stands on the newest kept entry; what the checker refuses is left out, and operations when they do not fit together any more. The source is
// not changed, and the result passes Verify. Out is ErrExists when it is there.
func Salvage(ctx context.Context, o SalvageOptions) (Salvaged, error) {
	id := strings.TrimSuffix(filepath.Base(o.Out), o.To.Ext())
	if err := store.CheckID(id); err != nil {
		return Salvaged{}, err
	}
	if _, err := os.Lstat(o.Out); err == nil {
		return Salvaged{}, fmt.Errorf("salvage to %s: %w", o.Out, store.ErrExists)
	}
	from, ok := o.From.(store.Salvager)
	if !ok {
		return Salvaged{}, errors.ErrUnsupported
	}
	src, err := from.Salvage(ctx, o.Path)
	if err != nil {
		return Salvaged{}, fmt.Errorf("salvage %s: %w", o.Path, err)
	}
	s := salvage{o: o, src: src, refused: newRefusals()}
	done, err := s.run(ctx, id)
	return done, errors.Join(err, src.Close())
}

type salvage struct {
	o       SalvageOptions
	src     *store.Salvage
	refused *refusals
}

// run decides what is kept, in rounds: what the checker finds in a trial is left
// out of the next.
func (s *salvage) run(ctx context.Context, id string) (Salvaged, error) {
	for range maxRounds {
		p, err := s.survey()
		if err != nil {
			return Salvaged{}, err
		}
		p.done.ID = id
		if s.o.DryRun {
			return p.done, nil
		}
		problems, err := s.try(ctx, p)
		if err != nil {
			return Salvaged{}, err
		}
		if len(problems) == 0 {
			return p.done, s.o.To.Build(ctx, s.o.Out, s.snapshot(p), store.BuildOptions{})
		}
		if !s.refused.add(problems) {
			return Salvaged{}, fmt.Errorf("salvage %s: what is readable makes no sound session: %s (%s)", s.o.Path, problems[0].Message, problems[0].Where)
		}
	}
	return Salvaged{}, fmt.Errorf("salvage %s: what is readable makes no sound session", s.o.Path)
}

// try builds the session in a folder of its own beside Out and returns the errors
// that the checker finds in it.
func (s *salvage) try(ctx context.Context, p *plan) (found []store.Problem, err error) {
	parent, name := filepath.Dir(s.o.Out), "."+filepath.Base(s.o.Out)+".salvage-"
	if err := sweepTrials(parent, name); err != nil {
		return nil, fmt.Errorf("salvage: %w", err)
	}
	_, release := fsx.LockFolder(parent, false)
	defer release()
	dir, err := os.MkdirTemp(parent, name)
	if err != nil {
		return nil, fmt.Errorf("salvage: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, filepath.Base(s.o.Out))
	if err := s.o.To.Build(ctx, path, s.snapshot(p), store.BuildOptions{NoSync: true}); err != nil {
		return nil, err
	}
	r, err := s.o.To.View(ctx, path)
	if err != nil {
		return nil, err
	}
	for problem := range store.Verify(ctx, r, s.o.Checks...) {
		if problem.Severity == store.SeverityError {
			found = append(found, problem)
		}
	}
	return found, errors.Join(ctx.Err(), r.Close())
}

// sweepTrials removes the folders that killed attempts left. While another one is at
// work, which then fails as Out is there, nothing is removed.
func sweepTrials(parent, name string) error {
	alone, release := fsx.LockFolder(parent, true)
	defer release()
	if !alone {
		return nil
	}
	files, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.IsDir() && strings.HasPrefix(f.Name(), name) {
			if err := os.RemoveAll(filepath.Join(parent, f.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// snapshot is the plan as a store that can be built.
func (s *salvage) snapshot(p *plan) *store.Snapshot {
	h := s.src.Header
	// Records are taken as they are, so the storage version is theirs: it is migrated
	// when it is owned.
	h.ID, h.NextSeq = p.done.ID, 0
	h.Generation++
	if s.src.HeaderLost != "" {
		h.CreatedAt, h.StorageVersion = p.oldest, store.StorageVersion
	}
	if h.ParentSessionID == h.ID {
		h.ParentSessionID = ""
	}
	return &store.Snapshot{
		Header: h, NextSeq: max(p.next, s.src.Header.NextSeq), Records: s.records(p),
		Close: func() error { return nil },
	}
}

// records gives the planned records; those of a lane that the plan had to
// complete come last.
func (s *salvage) records(p *plan) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		n := 0
		for r, err := range s.src.Records(func(store.Loss) {}) {
			if err != nil {
				yield(r, err)
				return
			}
			i := n
			n++
			if p.skip[i] {
				continue
			}
			if r.Entry != nil {
				if parent, moved := p.parent[i]; moved {
					e := *r.Entry
					e.ParentID = parent
					r.Entry = &e
				}
			}
			if value, changed := p.value[i]; changed {
				r.Value = value
			}
			if !yield(r, nil) {
				return
			}
		}
		for _, r := range p.extra {
			if !yield(r, nil) {
				return
			}
		}
	}
}
