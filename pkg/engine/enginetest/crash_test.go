package enginetest_test

import (
	"os"
	"testing"

	"github.com/drover-run/drover/pkg/engine/enginetest"
)

func TestCrash(t *testing.T) {
	long := os.Getenv("DROVER_TEST_LONG") != ""
	plan := enginetest.CrashPlan{Every: 1, Effects: true}
	if long {
		plan.Twice, plan.Breakpoints = 1, true
	}
	enginetest.Crash(t, enginetest.Memory, plan)
}
