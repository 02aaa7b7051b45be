package engine_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-run/drover/pkg/engine/enginetest"
)

// The encodings on disk play their histories where no race detector slows SQLite
// down.
func TestRandomHistories(t *testing.T) { enginetest.RandomHistories(t, enginetest.Memory, "30") }

func FuzzRandomHistories(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(enginetest.RandomHistory(f, enginetest.Memory)))
}
