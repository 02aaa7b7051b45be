package cli

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// outsideMember names the file that holds what was too long for a result.
const outsideMember = "fullOutputPath"

// outsideFiles are the files that tools have kept beside a session and that it names,
// as far as they are still there. They are no part of it, and hold what it says.
func outsideFiles(ctx context.Context, q store.Queries) ([]string, error) {
	const page = 1000
	var found []string
	query := store.EntryQuery{Type: store.TypeMessage, Limit: page}
	for {
		entries, err := q.ScanEntries(ctx, query)
		if err != nil {
			return nil, err
		}
		for i := range entries {
			path := outsideFile(&entries[i])
			if path == "" || slices.Contains(found, path) {
				continue
			}
			if fi, err := os.Stat(path); err == nil && fi.Mode().IsRegular() {
				found = append(found, path)
			}
		}
		if len(entries) < page {
			return found, nil
		}
		query.FromSeq = entries[len(entries)-1].Seq + 1
	}
}

func outsideFile(e *store.Entry) string {
	if !bytes.Contains(e.Payload, []byte(outsideMember)) {
		return ""
	}
	m := e.Message()
	if m == nil {
		return ""
	}
	if m.Role() == message.RoleToolResult {
		details, _ := rawjson.Get(m, "details")
		path, _ := rawjson.GetString(details, outsideMember)
		return path
	}
	path, _ := rawjson.GetString(m, outsideMember)
	return path
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
