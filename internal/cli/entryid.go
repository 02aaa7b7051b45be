package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/pkg/store"
)

// entryID is the entry that an argument means: a full id, or the ending of one
// that `drover log` shows on a terminal. An argument that means none is returned
// as it is, so that who uses it says so.
func (b *base) entryID(ctx context.Context, q store.Queries, arg string) (string, error) {
	found, err := q.Entries(ctx, []string{arg})
	if err != nil || len(found) > 0 || len(arg) < store.MinShortID {
		return arg, err
	}
	ids, err := placedIDs(ctx, q)
	if err != nil {
		return arg, err
	}
	return byEnding(arg, ids)
}

// queuedID is entryID for an entry that may still wait for its place.
func (b *base) queuedID(ctx context.Context, q store.Queries, arg string) (string, error) {
	found, err := q.Entries(ctx, []string{arg})
	if err != nil || len(found) > 0 || len(arg) < store.MinShortID {
		return arg, err
	}
	if _, ok, err := store.Get(ctx, q, store.Pending(arg)); err != nil || ok {
		return arg, err
	}
	pending, err := q.ScanValues(ctx, store.PendingEntries().Address())
	if err != nil {
		return arg, err
	}
	ids, err := placedIDs(ctx, q)
	if err != nil {
		return arg, err
	}
	for _, p := range pending {
		ids = append(ids, p.Key)
	}
	return byEnding(arg, ids)
}

func placedIDs(ctx context.Context, q store.Queries) ([]string, error) {
	entries, err := q.ScanEntries(ctx, store.EntryQuery{})
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = e.ID
	}
	return ids, err
}

// byEnding is the one id that ends like the argument; none leaves the argument as
// it is.
func byEnding(arg string, ids []string) (string, error) {
	matches := slices.DeleteFunc(ids, func(id string) bool { return !strings.HasSuffix(id, arg) })
	switch len(matches) {
	case 0:
		return arg, nil
	case 1:
		return matches[0], nil
	}
	f := notFoundf("ambiguous_entry", "%q matches %d entries", escapeLine(arg), len(matches))
	f.details = func(d *object) { d.strs("candidates", matches) }
	f.message += fmt.Sprintf(": %s", escapeLine(strings.Join(matches, ", ")))
	return arg, f.withHint("give more of the id")
}
