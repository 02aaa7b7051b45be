package jsonl_test

import (
	"testing"

	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t testing.TB) (store.Driver, string) { return jsonl.Driver{}, t.TempDir() })
}
