package jsonl_test

import (
	"testing"

	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/memory"
	"github.com/drover-run/drover/pkg/store/storetest"
)

func TestRandomHistories(t *testing.T) {
	subject := func(t testing.TB) (store.Driver, string) { return jsonl.Driver{}, t.TempDir() }
	oracle := func(t testing.TB) (store.Driver, string) { return &memory.Driver{}, t.TempDir() }
	storetest.RunRandom(t, subject, oracle)
}
