package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/drover-run/drover/internal/fsx"
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
		torn, err := r.tornTail()
		if err != nil {
			return nil, err
		}
		found, err := beside(r.path)
		return append(torn, found...), err
	})
}

// tornTail reports what follows the last commit, unless somebody has written
// since the file was read.
func (r *reader) tornTail() ([]store.Problem, error) {
	settled, size, err := settledEnd(r.file)
	if err != nil || settled != r.size {
		return nil, err
	}
	return tornTail(r.next, r.size, size), nil
}

// tornTail is the finding on a file that ends in the middle of a line: a commit
// that no caller was told of. It is no damage; the next writer cuts it off (D15).
func tornTail(line, size, end int64) []store.Problem {
	if end <= size {
		return nil
	}
	return []store.Problem{warning("torn_tail", fmt.Sprintf("line %d, byte %d", line, size),
		fmt.Sprintf("the last %d bytes are the beginning of a commit that was not finished; the next writer cuts them off", end-size))}
}

// Problems checks what lies beside the file, while no compaction runs.
func (b *backend) Problems(ctx context.Context) iter.Seq[store.Problem] {
	return problems(func() ([]store.Problem, error) {
		if err := b.enter(ctx); err != nil {
			return nil, err
		}
		defer b.leave()
		found, err := beside(b.path)
		return append(tornTail(b.torn, b.size, b.end), found...), err
	})
}

// beside finds what is left or broken in the file's neighbourhood.
func beside(path string) ([]store.Problem, error) {
	found, err := temporaries(path)
	bad, lockErr := lockProblem(path)
	return append(found, bad...), errors.Join(err, lockErr)
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
	names, err := fsx.Temps(path)
	var out []store.Problem
	for _, name := range names {
		out = append(out, warning("leftover", filepath.Base(name), "a temporary file of an interrupted replacement"))
	}
	return out, err
}

// lockProblem reports a lock file that says nothing about its last owner, which
// locks all the same and is written anew by the next, and one that cannot lock.
func lockProblem(path string) ([]store.Problem, error) {
	name := lockPath(path)
	if fsx.DanglingLink(name) {
		return []store.Problem{warning("lease", filepath.Base(name), "the lock file is a symbolic link to nothing: the session cannot be written")}, nil
	}
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
