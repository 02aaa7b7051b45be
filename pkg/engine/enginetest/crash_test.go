package enginetest_test

import (
	"os"
	"testing"

	"github.com/drover-run/drover/pkg/engine/enginetest"
)

// All of it, and every backend, runs where no race detector slows it down.
func TestCrash(t *testing.T) {
	plan := enginetest.CrashPlan{Cases: 8, Commits: 4, Effects: 4}
	if os.Getenv("DROVER_TEST_LONG") != "" {
		plan = enginetest.CrashPlan{Commits: 1, Effects: 1, Breakpoints: 1, Twice: 5}
	}
	enginetest.Crash(t, enginetest.Memory, plan)
}
