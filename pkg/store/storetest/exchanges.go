package storetest

import (
	"context"
	"errors"
	"iter"
	"os"
	"testing"

	"github.com/drover-run/drover/pkg/store"
)

// The rules of a replacement of a session's whole content (spec §2.9, D51).
var exchangeRules = []rule{
	{"an exchange puts the new content in place, one generation later, and the owner goes on", exchangeGoesOn},
	{"the judge sees the new store, the old one still stands, and its no keeps that", exchangeJudged},
	{"an exchange whose content cannot be made changes nothing", exchangeRefused},
	{"B31: a reader that began before an exchange ends in the old content", exchangeBesideReader},
}

// exchange runs x on an open session, or skips where there is no file to replace.
func exchange(t *testing.T, s *store.Session, x store.Exchange) error {
	t.Helper()
	err := s.Exchange(t.Context(), x)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("this storage has no file to replace")
	}
	return err
}

// without leaves one list out.
func without(addr store.Address) func(*store.Snapshot) (*store.Snapshot, error) {
	return func(old *store.Snapshot) (*store.Snapshot, error) {
		next := *old
		next.Outline = nil
		next.Records = func(yield func(store.Record, error) bool) {
			for r, err := range old.Records {
				if r.Address == addr {
					continue
				}
				if !yield(r, err) {
					return
				}
			}
		}
		return &next, nil
	}
}

// lessList is what a session holds once the list is gone.
func lessList(before content, addr store.Address) content {
	after := before
	after.Records = nil
	for _, r := range before.Records {
		if r.Address != addr {
			after.Records = append(after.Records, r)
		}
	}
	return after
}

func exchangeGoesOn(t *testing.T, f *fixture) {
	r, s, ref := f.worn(t)
	before, generation := contents(t, s), s.Header().Generation
	commitAs(t, s, valueB.Set(raw("1")))
	next := valueSeq(t, s) + 1
	commitAs(t, s, valueB.Delete())
	if err := exchange(t, s, store.Exchange{Next: without(listA.Address())}); err != nil {
		t.Fatal(err)
	}
	want := lessList(before, listA.Address())
	same(t, "contents", contents(t, s), want)
	same(t, "generation", s.Header().Generation, generation+1)
	same(t, "left over", temporaries(t, ref.Path), []string(nil))
	commitAs(t, s, valueB.Set(raw("2")))
	if seq := valueSeq(t, s); seq <= next {
		t.Errorf("goes on at %d after %d and its deletion", seq, next)
	}
	closeSession(t, s)
	s = openSession(t, r, ref)
	same(t, "records, opened again", len(contents(t, s).Records), len(want.Records)+1)
}

func valueSeq(t *testing.T, s *store.Session) int64 {
	t.Helper()
	v, _ := value(t, s, valueB.Address())
	return v.Seq
}

func exchangeJudged(t *testing.T, f *fixture) {
	r, s, ref := f.worn(t)
	before := contents(t, s)
	no := errors.New("not this")
	judged := false
	err := exchange(t, s, store.Exchange{Next: without(listA.Address()), Judge: func(ctx context.Context, path string, next store.Reader) error {
		judged = true
		old, err := r.View(ctx, ref)
		if err != nil {
			return err
		}
		if n := elements(t, old, listA.Address()); n != 2 {
			t.Errorf("the old store has %d elements", n)
		}
		if n := elements(t, next, listA.Address()); n != 0 {
			t.Errorf("the new store has %d elements", n)
		}
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
		return errors.Join(no, old.Close())
	}})
	if !judged || !errors.Is(err, no) {
		t.Fatalf("judged %t, %v", judged, err)
	}
	same(t, "contents", contents(t, s), before)
	same(t, "left over", temporaries(t, ref.Path), []string(nil))
	commitAs(t, s, valueB.Set(raw("2")))
}

func elements(t *testing.T, q store.Queries, addr store.Address) int {
	t.Helper()
	list, err := q.ReadList(t.Context(), addr, store.ListQuery{})
	if err != nil {
		t.Error(err)
	}
	return len(list)
}

func exchangeRefused(t *testing.T, f *fixture) {
	_, s, ref := f.worn(t)
	before := contents(t, s)
	broken := errors.New("broken")
	for what, next := range map[string]func(*store.Snapshot) (*store.Snapshot, error){
		"at once": func(*store.Snapshot) (*store.Snapshot, error) { return nil, broken },
		"half-way": func(old *store.Snapshot) (*store.Snapshot, error) {
			next := *old
			next.Records = failing(old.Records, 3, broken)
			return &next, nil
		},
	} {
		if err := exchange(t, s, store.Exchange{Next: next}); !errors.Is(err, broken) {
			t.Errorf("%s: %v", what, err)
		}
		same(t, what+": contents", contents(t, s), before)
		same(t, what+": left over", temporaries(t, ref.Path), []string(nil))
	}
	commitAs(t, s, valueB.Set(raw("2")))
}

// failing yields n records and then err.
func failing(records iter.Seq2[store.Record, error], n int, err error) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		left := n
		for r, e := range records {
			if left--; left < 0 {
				yield(store.Record{}, err)
				return
			}
			if !yield(r, e) {
				return
			}
		}
	}
}

func exchangeBesideReader(t *testing.T, f *fixture) {
	r, s, ref := f.worn(t)
	if _, err := os.Stat(ref.Path); err != nil {
		t.Skip("this storage has no file to replace")
	}
	before := contents(t, s)
	view, err := r.View(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	// A reader of the log may keep it from being emptied: then nothing happens.
	if err := exchange(t, s, store.Exchange{Next: without(listA.Address())}); err != nil {
		same(t, "contents of the refused", contents(t, s), before)
	}
	snap, err := view.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	records, err := store.Collect(snap)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "what the reader sees", len(records), len(before.Records))
	if err := view.Close(); err != nil {
		t.Fatal(err)
	}
	if err := exchange(t, s, store.Exchange{Next: without(listB.Address())}); err != nil {
		t.Errorf("once the reader is gone: %v", err)
	}
}
