package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/drover-run/drover/pkg/search"
	"github.com/drover-run/drover/pkg/store"
)

// searchIndex is the index of one repository, for commands that take sessions out
// of it. There may be none.
type searchIndex struct {
	cache string
	repo  *store.Repo
}

// searchIndexOf finds the index, nil when there is no place for one.
func (f *factory) searchIndexOf(repo *store.Repo) *searchIndex {
	cache, err := cacheFolder(f.env)
	if err != nil {
		return nil
	}
	return &searchIndex{cache: cache, repo: repo}
}

// with runs do on the index. One that cannot be read is thrown away: it has no
// authority, and whatever it held goes with it.
func (s *searchIndex) with(ctx context.Context, do func(*search.Index) error) error {
	path, err := search.Path(s.cache, s.repo.Dir())
	if err != nil {
		return err
	}
	x, err := search.OpenExisting(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = firstOf(do(x), x.Close())
	}
	if damage, ok := errors.AsType[*store.Corrupt](err); ok && damage.Path == path {
		return search.Discard(ctx, path)
	}
	return err
}

// remove takes a session out of the index.
func (s *searchIndex) remove(ctx context.Context, id string) error {
	return s.with(ctx, func(x *search.Index) error { return x.Remove(ctx, id) })
}

// purge takes a session out of the index, proves that nothing of the texts is left
// in dead bytes, and reads the session anew (D53). That other sessions hold a text
// is told elsewhere.
func (s *searchIndex) purge(ctx context.Context, id string, texts []string) error {
	return s.with(ctx, func(x *search.Index) error {
		if err := x.Purge(ctx, id); err != nil {
			return err
		}
		for _, text := range texts {
			held, err := x.Holds(ctx, text)
			if err != nil {
				return err
			}
			if len(held.Sessions) == 0 && len(held.Files) > 0 {
				return fmt.Errorf("%s still holds a text that had to go", held.Files[0])
			}
		}
		_, err := x.Sync(ctx, s.repo, search.SyncOptions{})
		return err
	})
}
