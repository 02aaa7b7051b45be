package sqlite

import (
	"testing"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/storetest"
)

// TestB23FaultMatrix: every call that replaces or removes a file fails once.
func TestB23FaultMatrix(t *testing.T) {
	storetest.RunFaults(t, func(fsys fsx.FS) store.Driver { return Driver{system: fsys} })
}
