package cli

import (
	"os"
	"testing"

	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/sqlite"
)

// The crash matrix of the engine over every encoding (spec §9.3). It stands here
// because this package links all of them and is tested without the race detector.
func TestCrash(t *testing.T) {
	encodings := []struct {
		name   string
		driver func(testing.TB) (store.Driver, string)
		short  enginetest.CrashPlan
	}{
		{"memory", enginetest.Memory, enginetest.CrashPlan{Commits: 5, Effects: 5, Twice: 24}},
		{"jsonl", func(t testing.TB) (store.Driver, string) { return &jsonl.Driver{}, t.TempDir() }, enginetest.CrashPlan{Commits: 12}},
		{"sqlite", func(t testing.TB) (store.Driver, string) { return &sqlite.Driver{}, t.TempDir() }, enginetest.CrashPlan{Cases: 4, Commits: 12}},
	}
	for _, e := range encodings {
		t.Run(e.name, func(t *testing.T) {
			plan := e.short
			if os.Getenv("DROVER_TEST_LONG") != "" {
				plan = enginetest.CrashPlan{Commits: 1, Effects: 1}
			}
			enginetest.Crash(t, e.driver, plan)
		})
	}
}
