package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-run/drover/internal/bulk"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/sqlite"
)

// scale is how much TestScale makes: little, or what the long form wants.
type scale struct {
	small map[store.Driver]int // how many sessions of smallShape
	large int                  // entries of each large session
}

func scaleOf() scale {
	if os.Getenv("DROVER_TEST_LONG") == "" {
		return scale{map[store.Driver]int{jsonl.Driver{}: 20, sqlite.Driver{}: 4}, 2_000}
	}
	return scale{map[store.Driver]int{jsonl.Driver{}: 9_000, sqlite.Driver{}: 1_000}, 1_000_000}
}

var smallShape = bulk.Shape{Entries: 5, Text: 100}

// wantFields compares values at dotted paths of a command's JSON.
func wantFields(t *testing.T, out string, want map[string]any) {
	t.Helper()
	for path, value := range want {
		got, err := lookupField(out, path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		} else if got != fmt.Sprint(value) {
			t.Errorf("%s is %s, want %v", path, got, value)
		}
	}
}

// The commands that look at whole sessions, on many and on large ones.
func TestScale(t *testing.T) {
	n := scaleOf()
	t.Run("many", func(t *testing.T) { manySessions(t, n) })
	for _, d := range []store.Driver{jsonl.Driver{}, sqlite.Driver{}} {
		t.Run(d.Name(), func(t *testing.T) { largeSession(t, d, n.large) })
	}
}

func manySessions(t *testing.T, n scale) {
	dir, total := t.TempDir(), 0
	for d, count := range n.small {
		s := smallShape
		s.ID = d.Name()
		if err := bulk.Fill(t.Context(), d, dir, count, s); err != nil {
			t.Fatal(err)
		}
		total += count
	}
	last := strconv.Itoa(total - 1)
	for range 2 { // cold, then warm
		wantFields(t, output(t, dir, "list", "--json", "--sort", "id"), map[string]any{
			"totals.sessions": total, "totals.damaged": 0,
			"items.0.id": "jsonl-00000", "items.0.messages": 5, "items.0.name": "session jsonl-00000",
			"items." + last + ".id": fmt.Sprintf("sqlite-%05d", n.small[sqlite.Driver{}]-1), "items." + last + ".messages": 5,
		})
	}
	out := output(t, dir, "verify", "--all", "--json")
	wantFields(t, out, map[string]any{
		"totals.ok": true, "totals.sessions": total, "totals.problems": 0,
		"items." + last + ".counts.entries": 5,
	})
}

func largeSession(t *testing.T, d store.Driver, entries int) {
	dir := t.TempDir()
	shape := bulk.Shape{ID: "s", Entries: entries, Text: 200}
	path, err := bulk.Build(t.Context(), d, dir, shape)
	if err != nil {
		t.Fatal(err)
	}
	counts := shape.Counts()
	wantFields(t, output(t, dir, "inspect", "s", "--json"), map[string]any{
		"stats.messageCount": counts.Messages, "lanes.0.leafId": shape.Leaf(),
	})
	sound := func(id string, usage int64) {
		t.Helper()
		wantFields(t, output(t, dir, "verify", id, "--json"), map[string]any{
			"totals.ok": true, "totals.problems": 0,
			"items.0.counts.entries": counts.Entries, "items.0.counts.messages": counts.Messages,
			"items.0.counts.usage": usage, "items.0.counts.lanes": 1,
		})
	}
	sound("s", counts.Usage)

	wantFields(t, output(t, dir, "fork", "s", "--id", "tree", "--json"), map[string]any{"id": "tree", "entries": counts.Entries})
	sound("tree", 0) // the ledger is not copied
	point := bulk.EntryID(entries / 2)
	branch := output(t, dir, "fork", "s", "--id", "branch", "--scope", "branch", "--entry", point, "--json")
	wantFields(t, branch, map[string]any{"entries": pathLength(shape, entries/2)})
	wantFields(t, output(t, dir, "inspect", "branch", "--json"), map[string]any{"lanes.0.leafId": point})

	litter(t, d, dir)
	before := size(t, path)
	wantFields(t, output(t, dir, "compact-file", "s", "--json"), map[string]any{"items.0.changed": true})
	if after := size(t, path); after > before-litterBytes {
		t.Errorf("compaction left %d of %d bytes", after, before)
	}
	sound("s", counts.Usage)
	if left, err := filepath.Glob(filepath.Join(dir, ".*tmp*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

const litterBytes = 256 << 10

// litter leaves dead bytes in the session's file.
func litter(t *testing.T, d store.Driver, dir string) {
	t.Helper()
	repo, err := store.NewRepo(store.RepoOptions{Dir: dir, Drivers: drivers()})
	if err != nil {
		t.Fatal(err)
	}
	s, err := repo.Open(t.Context(), store.Ref{ID: "s", Path: filepath.Join(dir, "s"+d.Ext()), Backend: d.Name()})
	if err != nil {
		t.Fatal(err)
	}
	list := store.NewList[string]("app", "litter")
	for _, write := range []store.Write{list.Append(strings.Repeat("x", litterBytes)), list.Delete()} {
		if err := s.Mutate(t.Context(), store.MainLane, func(m *store.Mutator) error {
			_, err := m.Commit(store.Tx{write})
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// pathLength is how many entries lie on the path to entry i, which is no side
// leaf.
func pathLength(s bulk.Shape, i int) int {
	n := 1
	for j := range i {
		if j%10 != 9 {
			n++
		}
	}
	return n
}
