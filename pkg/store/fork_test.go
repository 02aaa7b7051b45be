package store_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

func recordsOf(t *testing.T, r *store.Repo, ref store.Ref) []store.Record {
	t.Helper()
	v, err := r.View(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	snap, err := v.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	records, err := store.Collect(snap)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// A fork into another encoding holds what one into the source's own holds.
func TestForkAcrossBackends(t *testing.T) {
	for source, other := range map[string]string{"jsonl": "memory", "memory": "jsonl"} {
		t.Run(source+" to "+other, func(t *testing.T) {
			r, _, _ := twoBackends(t)
			s, src, err := r.Create(t.Context(), store.CreateOptions{ID: "src", Name: "n", Backend: source})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.View(store.MainLane).AppendMessage(t.Context(), message.Message(`{"role":"user","content":"\ud800 1.0","timestamp":1}`)); err != nil {
				t.Fatal(err)
			}
			if err := store.SetValue(t.Context(), s.View(store.MainLane), store.NewValue[string]("app", "k"), "v"); err != nil {
				t.Fatal(err)
			}
			for _, open := range []*store.Session{s, nil} {
				if open == nil {
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				}
				same, err := r.Fork(t.Context(), src, open, store.ForkOptions{})
				if err != nil {
					t.Fatal(err)
				}
				across, err := r.Fork(t.Context(), src, open, store.ForkOptions{Backend: other})
				if err != nil {
					t.Fatal(err)
				}
				if same.Ref.Backend != source || across.Ref.Backend != other {
					t.Fatalf("forks in %s and %s", same.Ref.Backend, across.Ref.Backend)
				}
				if diff := cmp.Diff(recordsOf(t, r, same.Ref), recordsOf(t, r, across.Ref)); diff != "" {
					t.Fatalf("in %s and in %s differ:\n%s", source, other, diff)
				}
				if !slices.Equal(across.Lanes, []string{store.MainLane}) || across.Entries != 1 {
					t.Fatalf("fork %+v", across)
				}
			}
		})
	}
}
