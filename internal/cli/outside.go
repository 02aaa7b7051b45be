package cli

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/drover-run/drover/pkg/store"
)

// outsideFiles are the files that tools have kept beside a session and that it names,
// as far as they are still there. They are no part of it, and hold what it says.
func outsideFiles(ctx context.Context, q store.Queries) ([]string, error) {
	const page = 1000
	var named []string
	query := store.EntryQuery{Type: store.TypeMessage, Limit: page}
	for {
		entries, err := q.ScanEntries(ctx, query)
		if err != nil {
			return nil, err
		}
		for i := range entries {
			if path := entries[i].Message().OutputFile(); path != "" {
				named = append(named, path)
			}
		}
		if len(entries) < page {
			return stillThere(named), nil
		}
		query.FromSeq = entries[len(entries)-1].Seq + 1
	}
}

// stillThere returns which of the files there are, each once.
func stillThere(paths []string) []string {
	slices.Sort(paths)
	return slices.DeleteFunc(slices.Compact(paths), func(path string) bool {
		fi, err := os.Stat(path)
		return err != nil || !fi.Mode().IsRegular()
	})
}

// warnOutside tells of files that keep what was to go.
func (b *base) warnOutside(paths []string) {
	const most = 10
	if len(paths) == 0 {
		return
	}
	more := ""
	if len(paths) > most {
		more = ", ..."
	}
	b.out.warn("files_left", "%d file(s) that tools have written outside the session stay: %s%s", len(paths), strings.Join(paths[:min(most, len(paths))], ", "), more)
}
