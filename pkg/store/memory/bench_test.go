package memory_test

import (
	"testing"

	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/memory"
	"github.com/drover-run/drover/pkg/store/storetest"
)

func BenchmarkScale(b *testing.B) {
	storetest.Scale(b, func(t testing.TB) (store.Driver, string) { return &memory.Driver{}, t.TempDir() })
}
