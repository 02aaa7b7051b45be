package sqlite_test

import (
	"testing"

	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/memory"
	"github.com/drover-run/drover/pkg/store/sqlite"
	"github.com/drover-run/drover/pkg/store/storetest"
)

func TestRandomHistories(t *testing.T) {
	subject := func(t testing.TB) (store.Driver, string) { return sqlite.Driver{}, t.TempDir() }
	oracle := func(t testing.TB) (store.Driver, string) { return &memory.Driver{}, t.TempDir() }
	storetest.RunRandom(t, subject, oracle)
}
