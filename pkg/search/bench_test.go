package search_test

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-run/drover/internal/bulk"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/search"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/sqlite"
)

// prose makes texts whose words are as unlike as those of a language: few are
// frequent, many are rare.
type prose struct {
	zipf *rand.Zipf
	size *rand.Rand
}

func newProse() prose {
	r := rand.New(rand.NewPCG(1, 2))
	return prose{zipf: rand.NewZipf(r, 1.1, 4, 60_000), size: r}
}

func (p prose) text(bytes int) string {
	var b strings.Builder
	for b.Len() < bytes {
		fmt.Fprintf(&b, "%s%x ", []string{"ro", "ka", "mi", "tul", "se", "an"}[p.size.IntN(6)], p.zipf.Uint64())
	}
	return b.String()
}

// proseRepo is a repository whose sessions are old enough for the catalog, and all
// the texts in it.
func proseRepo(b *testing.B, d store.Driver, sessions, entries, bytes int) (dir string, texts []string) {
	b.Helper()
	dir = b.TempDir()
	p := newProse()
	for i := range sessions {
		snap, err := bulk.Shape{ID: fmt.Sprintf("bulk%06d", i), Entries: entries, Plain: true}.Snapshot()
		if err != nil {
			b.Fatal(err)
		}
		records := snap.Records
		snap.Records = func(yield func(store.Record, error) bool) {
			for r, err := range records {
				if r.Entry != nil {
					text := p.text(bytes)
					texts = append(texts, text)
					r.Entry.Payload = append(append([]byte(`{"message":`), message.NewUser(text, nil, r.Entry.Timestamp)...), '}')
				}
				if !yield(r, err) {
					return
				}
			}
		}
		path := filepath.Join(dir, snap.Header.ID+d.Ext())
		if err := d.Build(b.Context(), path, snap, store.BuildOptions{NoSync: true}); err != nil {
			b.Fatal(err)
		}
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(path, old, old); err != nil {
			b.Fatal(err)
		}
	}
	return dir, texts
}

// bare inserts the texts into an FTS5 table of the specification's columns, in one
// transaction.
func bare(b *testing.B, path string, texts []string) {
	b.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_journal_mode=WAL&_synchronous=NORMAL")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE VIRTUAL TABLE t USING fts5(session_id UNINDEXED, entry_id UNINDEXED, text)`); err != nil {
		b.Fatal(err)
	}
	tx, err := db.Begin()
	if err != nil {
		b.Fatal(err)
	}
	insert, err := tx.Prepare(`INSERT INTO t(session_id, entry_id, text) VALUES(?, ?, ?)`)
	if err != nil {
		b.Fatal(err)
	}
	for i, text := range texts {
		if _, err := insert.Exec("018bcfe5-6800-7000-8000-000000000000", bulk.EntryID(i), text); err != nil {
			b.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkSync makes the index of a repository that nobody has read before, in turns
// with a bare FTS5 insert loop of the same texts; "of-bare" is how fast it is by
// that measure.
func BenchmarkSync(b *testing.B) {
	for _, shape := range []struct {
		name                     string
		driver                   store.Driver
		sessions, entries, bytes int
	}{
		{"jsonl/long", jsonl.Driver{}, 20, 500, 1500},
		{"sqlite/long", sqlite.Driver{}, 20, 500, 1500},
		{"jsonl/short", jsonl.Driver{}, 1000, 20, 200},
		{"sqlite/short", sqlite.Driver{}, 1000, 20, 200},
	} {
		b.Run(shape.name, func(b *testing.B) {
			dir, texts := proseRepo(b, shape.driver, shape.sessions, shape.entries, shape.bytes)
			var ours, theirs []time.Duration
			for b.Loop() {
				if err := os.Remove(filepath.Join(dir, ".drover-catalog")); err != nil && !errors.Is(err, fs.ErrNotExist) {
					b.Fatal(err)
				}
				work := b.TempDir()
				begun := time.Now()
				x, err := search.Open(b.Context(), filepath.Join(work, "index.db"))
				if err != nil {
					b.Fatal(err)
				}
				done, err := x.Sync(b.Context(), newRepo(b, dir), search.SyncOptions{})
				if err != nil || done.Entries != len(texts) {
					b.Fatalf("%+v, %v; want %d entries", done, err, len(texts))
				}
				ours = append(ours, time.Since(begun))
				if err := x.Close(); err != nil {
					b.Fatal(err)
				}
				begun = time.Now()
				bare(b, filepath.Join(work, "bare.db"), texts)
				theirs = append(theirs, time.Since(begun))
			}
			b.ReportMetric(median(theirs)/median(ours), "of-bare")
			b.ReportMetric(median(ours)*1e3, "ours-ms")
		})
	}
}

func median(d []time.Duration) (seconds float64) {
	slices.Sort(d)
	return d[len(d)/2].Seconds()
}

// BenchmarkSyncOfNothing is a sync of ten thousand sessions none of which has
// changed.
func BenchmarkSyncOfNothing(b *testing.B) {
	for _, d := range []store.Driver{jsonl.Driver{}, sqlite.Driver{}} {
		b.Run(d.Name(), func(b *testing.B) {
			dir, _ := proseRepo(b, d, 10_000, 2, 20)
			x := openIndex(b, filepath.Join(b.TempDir(), "index.db"))
			repo := newRepo(b, dir)
			if _, err := x.Sync(b.Context(), repo, search.SyncOptions{}); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				done, err := x.Sync(b.Context(), repo, search.SyncOptions{})
				if err != nil || done.Changed != 0 {
					b.Fatalf("%+v, %v", done, err)
				}
			}
		})
	}
}
