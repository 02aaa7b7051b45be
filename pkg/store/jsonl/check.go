package jsonl

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
)

// Problems checks what lies beside the file (D7); the framing was checked when
// it was opened. What may belong to a compaction that runs now is not reported.
func (r *reader) Problems(ctx context.Context) iter.Seq[store.Problem] {
	return problems(func() ([]store.Problem, error) {
		lease, err := probe(ctx, r.path)
		if err != nil || lease != nil {
			return nil, err
		}
		found, err := temporaries(r.path)
		bad, lockErr := lockProblem(r.path)
		return append(found, bad...), errors.Join(err, lockErr)
	})
}

// Problems checks what lies beside the file, while no compaction runs.
func (b *backend) Problems(ctx context.Context) iter.Seq[store.Problem] {
	return problems(func() ([]store.Problem, error) {
		if err := b.enter(ctx); err != nil {
			return nil, err
		}
		defer b.leave()
		found, err := temporaries(b.path)
		bad, lockErr := lockProblem(b.path)
		return append(found, bad...), errors.Join(err, lockErr)
	})
}

func problems(find func() ([]store.Problem, error)) iter.Seq[store.Problem] {
	return func(yield func(store.Problem) bool) {
		found, err := find()
		if err != nil {
			found = append(found, store.ProblemOf(err))
		}
		for _, p := range found {
			if !yield(p) {
				return
			}
		}
	}
}

func temporaries(path string) ([]store.Problem, error) {
	names, err := leftovers(path)
	if errors.Is(err, fs.ErrPermission) {
		return nil, nil // a folder that may be searched but not listed
	}
	var out []store.Problem
	for _, name := range names {
		out = append(out, warning("leftover", filepath.Base(name), "a temporary file of an interrupted replacement"))
	}
	return out, err
}

// lockProblem reports a lock file that says nothing about its last owner. It
// locks all the same, and the next owner writes it anew.
func lockProblem(path string) ([]store.Problem, error) {
	name := lockPath(path)
	content, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || (err == nil && len(content) == 0) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if rawjson.KindOf(content) == rawjson.Object && parseOwner(content).id != "" {
		return nil, nil
	}
	return []store.Problem{warning("lease", filepath.Base(name), "the lock file cannot be read")}, nil
}

func warning(code, where, message string) store.Problem {
	return store.Problem{Code: code, Severity: store.SeverityWarning, Message: message, Where: where}
}
