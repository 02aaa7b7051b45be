package store_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/store"
)

// An application's address has one kind at a time (spec §1.3), within a
// transaction and across transactions; a refused one changes nothing.
func TestAddressesHaveOneKind(t *testing.T) {
	value, list := store.NewValue[int]("app", "x"), store.NewList[int]("app", "x")
	other := store.NewList[int]("app", "y")
	for name, tt := range map[string]struct {
		before, tx store.Tx
		refused    int // index of the refused write, -1 for none
		kind       store.WriteKind
	}{
		"a list beside a value":          {store.Tx{value.Set(1)}, store.Tx{list.Append(2)}, 0, store.KindValue},
		"a value beside a list":          {store.Tx{list.Append(1)}, store.Tx{other.Append(1), value.Set(2)}, 1, store.KindList},
		"both in one transaction":        {nil, store.Tx{value.Set(1), list.Append(2)}, 1, store.KindValue},
		"the other one after removal":    {store.Tx{value.Set(1)}, store.Tx{value.Delete(), list.Append(2)}, -1, 0},
		"removed only afterwards":        {store.Tx{list.Append(1)}, store.Tx{value.Set(2), list.Delete()}, 0, store.KindList},
		"removal of what is not there":   {store.Tx{value.Set(1)}, store.Tx{list.Delete()}, -1, 0},
		"another key":                    {store.Tx{value.Set(1)}, store.Tx{other.Append(2)}, -1, 0},
		"the same kind again":            {store.Tx{list.Append(1)}, store.Tx{list.Append(2)}, -1, 0},
		"set, removed, set as the other": {nil, store.Tx{list.Append(1), list.Delete(), value.Set(1)}, -1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, newBackend(t))
			commit := func(tx store.Tx) error {
				return s.Mutate(t.Context(), store.MainLane, func(m *store.Mutator) error {
					_, err := m.Commit(tx)
					return err
				})
			}
			if tt.before != nil {
				if err := commit(tt.before); err != nil {
					t.Fatal(err)
				}
			}
			err := commit(tt.tx)
			if tt.refused < 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var invalid *store.InvalidWrite
			if !errors.As(err, &invalid) {
				t.Fatalf("the commit ends with %v", err)
			}
			want := &store.InvalidWrite{Index: tt.refused, Err: &store.KindTaken{Address: value.Address(), Kind: tt.kind}}
			if diff := cmp.Diff(want, invalid); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
			elements, err := store.ReadList(t.Context(), s, other, store.ListQuery{})
			if err != nil || len(elements) > 0 {
				t.Errorf("what stood before the refused write was written: %v, %v", elements, err)
			}
			if s.Fault() != nil {
				t.Error("a refusal faulted the session")
			}
		})
	}
}
