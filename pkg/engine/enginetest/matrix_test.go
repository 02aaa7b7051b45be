package enginetest_test

import (
	"testing"

	"github.com/drover-run/drover/pkg/engine/enginetest"
)

func TestCrashMatrix(t *testing.T) { enginetest.CrashMatrix(t, enginetest.Memory, true) }
