package cli

import (
	"context"
	"fmt"
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
	entries, err := q.ScanEntries(ctx, store.EntryQuery{})
	if err != nil {
		return arg, err
	}
	var matches []string
	for _, e := range entries {
		if strings.HasSuffix(e.ID, arg) {
			matches = append(matches, e.ID)
		}
	}
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
