package storetest_test

import (
	"os"
	"testing"

	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/memory"
	"github.com/drover-run/drover/pkg/store/sqlite"
	"github.com/drover-run/drover/pkg/store/storetest"
)

// TestRandomHistories runs one history on all three encodings.
func TestRandomHistories(t *testing.T) {
	on := func(d store.Driver) storetest.NewDriver {
		return func(t testing.TB) (store.Driver, string) { return d, inMemory(t) }
	}
	storetest.RunRandom(t, on(&memory.Driver{}), on(jsonl.Driver{}), on(sqlite.Driver{}))
}

// inMemory is a folder in memory where the system has one: thousands of stores
// would wait for the disk.
func inMemory(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "drover-random-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
