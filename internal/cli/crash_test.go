package cli

import (
	"os"
	"testing"

	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/sqlite"
)

// The tests of the engine's deaths over the encodings on disk (spec §9.3). They
// stand here because this package links both and is tested without the race
// detector.

func inJSONL(t testing.TB) (store.Driver, string)  { return &jsonl.Driver{}, t.TempDir() }
func inSQLite(t testing.TB) (store.Driver, string) { return &sqlite.Driver{}, t.TempDir() }

func TestCrash(t *testing.T) {
	encodings := []struct {
		name   string
		driver func(testing.TB) (store.Driver, string)
		short  []enginetest.CrashPlan
	}{
		{"memory", enginetest.Memory, []enginetest.CrashPlan{{Commits: 5, Effects: 5, Twice: 24}}},
		{"jsonl", inJSONL, []enginetest.CrashPlan{{Commits: 12}, {Cases: 9, Commits: 12, Effects: 12, Breakpoints: 24, Twice: 6}}},
		{"sqlite", inSQLite, []enginetest.CrashPlan{{Cases: 4, Commits: 12}, {Cases: 17, Commits: 12, Effects: 12, Breakpoints: 24, Twice: 6}}},
	}
	for _, e := range encodings {
		t.Run(e.name, func(t *testing.T) {
			plans := e.short
			if os.Getenv("DROVER_TEST_LONG") != "" {
				plans = []enginetest.CrashPlan{{Commits: 1, Effects: 1, Breakpoints: 1, Twice: 5}}
			}
			for _, plan := range plans {
				enginetest.Crash(t, e.driver, plan)
			}
		})
	}
}

func TestRandomHistories(t *testing.T) {
	t.Run("jsonl", func(t *testing.T) { enginetest.RandomHistories(t, inJSONL, "40") })
	t.Run("sqlite", func(t *testing.T) { enginetest.RandomHistories(t, inSQLite, "15") })
}
