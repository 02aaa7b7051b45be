package export_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/export"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/v3import"
)

// Real files, which are no part of this project, come back as the same
// conversation, the whole tree of them (D56).
func TestCorpus(t *testing.T) {
	paths, _ := filepath.Glob(filepath.Join("..", "..", "..", "shared", "v3", "*.jsonl"))
	if len(paths) == 0 {
		t.Skip("no real session files")
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			legacy, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s, err := v3import.Read(t.Context(), path, v3import.Options{})
			var damaged *v3import.Failure
			if errors.As(err, &damaged) {
				t.Skip(err)
			} else if err != nil {
				t.Fatal(err)
			}
			_ = s.Close()
			first := imported(t, legacy)
			for _, all := range []bool{false, true} {
				out, report := piV3(t, first, export.Options{AllBranches: all})
				if len(report.Tails) > 0 {
					t.Errorf("tails written again: %v", report.Tails)
				}
				again := imported(t, out)
				if diff := cmp.Diff(conversation(t, first, "main"), conversation(t, again, "main")); diff != "" {
					t.Errorf("all branches %t: %s", all, diff)
				}
				if all {
					sameTree(t, first, again)
				}
			}
		})
	}
}

// sameTree compares everything but ids and the values that name them.
func sameTree(t *testing.T, a, b store.Reader) {
	t.Helper()
	count := func(r store.Reader) map[string]int {
		entries, err := r.ScanEntries(t.Context(), store.EntryQuery{})
		if err != nil {
			t.Fatal(err)
		}
		depth, seen := map[string]int{}, map[string]int{}
		for _, e := range entries {
			depth[e.ID] = depth[e.ParentID] + 1
			payload := e.Payload
			for _, name := range []string{"fromId", "data"} { // hold ids
				if payload, err = rawjson.Delete(payload, name); err != nil {
					t.Fatal(err)
				}
			}
			seen[string(e.Type)+" "+e.CustomType+" "+string(rune('0'+depth[e.ID]%10))+string(payload)]++
		}
		return seen
	}
	if diff := cmp.Diff(count(a), count(b)); diff != "" {
		t.Error(diff)
	}
	name := func(r store.Reader) string {
		s, _, err := store.Get(t.Context(), r, store.SessionName())
		if err != nil {
			t.Fatal(err)
		}
		return s.Value
	}
	if name(a) != name(b) {
		t.Errorf("named %q, then %q", name(a), name(b))
	}
}
