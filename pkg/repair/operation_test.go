package repair_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/repair"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/sqlite"
)

// The session is one whose run waits for its answer, with a message queued for the
// run and one for the next.
func TestSalvageOfAnOpenOperation(t *testing.T) {
	src, err := os.ReadFile("testdata/open.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(src, []byte("\n"))
	lines = lines[:len(lines)-1]
	dir := t.TempDir()
	path := filepath.Join(dir, "open.jsonl")
	var idle []int
	for n := range lines {
		damaged := slices.Clone(lines)
		damaged[n] = []byte("{\n")
		if err := os.WriteFile(path, bytes.Join(damaged, nil), 0o600); err != nil {
			t.Fatal(err)
		}
		s, _ := salvage(t, jsonl.Driver{}, path, sqlite.Driver{}, filepath.Join(dir, fmt.Sprintf("saved-%d.db", n)))
		if slices.ContainsFunc(s.Changed, func(l store.Loss) bool { return l.Code == "lane_idle" }) {
			idle = append(idle, n+1)
			if !names(s, "pi.op.") && !names(s, "pi.pending.") {
				t.Errorf("without line %d: the report names nothing of the operation: %v", n+1, s.Lost)
			}
		}
	}
	// The entry that it began at, the lane's configuration, its acceptance. A newer
	// state or a queued message that is lost leaves the operation as it was before.
	if want := []int{4, 5, 6}; !slices.Equal(idle, want) {
		t.Errorf("the operation is left out without any of the lines %v, want %v", idle, want)
	}
}

func names(s repair.Salvaged, namespace string) bool {
	return slices.ContainsFunc(s.Lost, func(l store.Loss) bool { return strings.HasPrefix(l.Where, namespace) })
}
