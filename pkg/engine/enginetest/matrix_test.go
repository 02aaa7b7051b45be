package enginetest_test

import (
	"testing"

	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
)

func TestCrashMatrix(t *testing.T) { enginetest.CrashMatrix(t, enginetest.Memory, true) }

func TestCrashMatrixJSONL(t *testing.T) {
	enginetest.CrashMatrix(t, func(t testing.TB) (store.Driver, string) { return &jsonl.Driver{}, t.TempDir() }, false)
}
