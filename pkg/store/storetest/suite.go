package storetest

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/drover-run/drover/pkg/store"
)

// NewDriver makes the driver under test and names a folder for its stores. Two
// calls share nothing.
type NewDriver func(t testing.TB) (d store.Driver, dir string)

// rule is one sentence of the suite and its proof.
type rule struct {
	name string
	test func(*testing.T, *fixture)
}

// Run checks one driver against every rule of storage and of the repository. A
// rule is the unit: its test starts with one fresh, empty store.
func Run(t *testing.T, newDriver NewDriver) {
	groups := []struct {
		name  string
		rules []rule
	}{
		{"transactions", transactionRules},
		{"admission", admissionRules},
		{"values", valueRules},
		{"lists", listRules},
		{"entries", entryRules},
		{"branches", branchRules},
		{"usage", usageRules},
		{"isolation", isolationRules},
		{"lifecycle", lifecycleRules},
		{"whole stores", wholeRules},
		{"repository", repoRules},
		{"forks", forkRules},
		{"maintenance", maintenanceRules},
		{"exchanges", exchangeRules},
		{"migrations", migrationRules},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, r := range g.rules {
				t.Run(r.name, func(t *testing.T) { r.test(t, newFixture(t, newDriver)) })
			}
		})
	}
}

// start is the time that every fixture's clock begins with, Unix ms.
const start = int64(1_700_000_000_000)

// fixture is one driver with a clock that only the test moves.
type fixture struct {
	driver store.Driver
	dir    string
	now    int64
}

func newFixture(t testing.TB, newDriver NewDriver) *fixture {
	d, dir := newDriver(t)
	return &fixture{driver: d, dir: dir, now: start}
}

func (f *fixture) path(id string) string { return filepath.Join(f.dir, id+f.driver.Ext()) }

// empty opens a fresh empty store, closed when the test ends.
func (f *fixture) empty(t testing.TB) store.Backend {
	t.Helper()
	f.build(t, "s1", store.NewSnapshot(header("s1"), nil))
	return f.open(t, "s1")
}

func header(id string) store.Header {
	return store.Header{ID: id, StorageVersion: store.StorageVersion, CreatedAt: start, Generation: 1}
}

func (f *fixture) build(t testing.TB, id string, snap *store.Snapshot) {
	t.Helper()
	if err := f.driver.Build(t.Context(), f.path(id), snap, store.BuildOptions{NoSync: true}); err != nil {
		t.Fatalf("build %s: %v", id, err)
	}
}

func (f *fixture) open(t testing.TB, id string) store.Backend {
	t.Helper()
	b, err := f.driver.Open(t.Context(), f.path(id), f.options())
	if err != nil {
		t.Fatalf("open %s: %v", id, err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close %s: %v", id, err)
		}
	})
	return b
}

func (f *fixture) options() store.OpenOptions {
	return store.OpenOptions{Now: func() int64 { return f.now }}
}

// reopen closes the store and opens it again.
func (f *fixture) reopen(t testing.TB, b store.Backend) store.Backend {
	t.Helper()
	id := b.Header().ID
	if err := b.Close(); err != nil {
		t.Fatalf("close %s: %v", id, err)
	}
	return f.open(t, id)
}

// entryID gives the n-th of many ids of the usual length.
func entryID(n int) string {
	const zeros = "018bcfe5-6800-7000-8000-000000000000"
	s := strconv.Itoa(n)
	return zeros[:len(zeros)-len(s)] + s
}
