package search_test

import (
	"testing"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/search"
	"github.com/drover-run/drover/pkg/store"
)

// A hit on a branch that was left says so.
func TestB32HitsOffTheLivePath(t *testing.T) {
	for _, backend := range []string{"sqlite", "jsonl"} {
		t.Run(backend, func(t *testing.T) {
			w := newWorld(t)
			ref := w.create("aaaaaa", backend, "root")
			s, err := w.repo.Open(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			main := s.View(store.MainLane)
			root, err := main.LeafID(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			say := func(text string) {
				if _, err := main.AppendMessage(t.Context(), message.NewUser(text, nil, 1)); err != nil {
					t.Fatal(err)
				}
			}
			say("dead")
			say("dead too")
			err = s.Mutate(t.Context(), store.MainLane, func(m *store.Mutator) error {
				_, err := m.Commit(store.Tx{store.LaneLeaf(store.MainLane).Set(root)})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			say("live")
			say("live leaf")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			w.sync()
			v, err := w.repo.View(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			defer v.Close()
			for query, want := range map[string]bool{"root": true, "dead": false, "live": true} {
				hits, err := w.x.Entries(t.Context(), search.Query{Text: query})
				if err != nil || len(hits) == 0 {
					t.Fatalf("search %q: %d hits, %v", query, len(hits), err)
				}
				for _, h := range hits {
					if got, err := search.OnLeafPath(t.Context(), v, h); err != nil || got != want {
						t.Errorf("%q is on the path of a leaf: %v, %v; want %v", h.Text(), got, err, want)
					}
				}
			}
		})
	}
}
