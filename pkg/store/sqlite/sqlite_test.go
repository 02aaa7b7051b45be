package sqlite_test

import (
	"testing"

	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/sqlite"
	"github.com/drover-run/drover/pkg/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t testing.TB) (store.Driver, string) {
		return sqlite.Driver{}, t.TempDir()
	})
}
