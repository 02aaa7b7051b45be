package storetest

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/drover-run/drover/pkg/store"
)

// The rules of opening, closing and owning one store (spec §1.5, §1.7).
var lifecycleRules = []rule{
	{"close is idempotent", closesTwice},
	{"after close every read and commit is refused", refusesAfterClose},
	{"everything survives a reopen", survivesReopen},
	{"sequence numbers go on after a reopen", sequenceGoesOn},
	{"sequence numbers of deleted values are not used again", sequenceOfDeleted},
	{"a second owner is refused and told who owns it", secondOwner},
	{"a reader sees an owned session and changes nothing", readerBesideOwner},
	{"an absent store is not there", absentStore},
	{"check is quiet while the store is sound", checkSound},
	{"deletes a closed store and no other", deletesStore},
	{"refuses to delete an owned store", refusesDeleteOwned},
}

func closesTwice(t *testing.T, f *fixture) {
	b := f.empty(t)
	for range 2 {
		if err := b.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
}

// queries calls every method of a reader and names it.
func queries(ctx context.Context, r store.Reader) map[string]error {
	errs := map[string]error{}
	_, errs["Entries"] = r.Entries(ctx, []string{"e1"})
	_, _, errs["Value"] = r.Value(ctx, valueA.Address())
	_, errs["ScanValues"] = r.ScanValues(ctx, valueA.Address())
	_, errs["ReadList"] = r.ReadList(ctx, listA.Address(), store.ListQuery{})
	_, errs["ScanBranch"] = r.ScanBranch(ctx, store.BranchQuery{Start: "e1"})
	_, errs["ScanBranchStructure"] = r.ScanBranchStructure(ctx, store.BranchQuery{Start: "e1"})
	_, errs["ScanEntries"] = r.ScanEntries(ctx, store.EntryQuery{})
	_, errs["ScanUsage"] = r.ScanUsage(ctx, store.UsageQuery{})
	_, errs["Stats"] = r.Stats(ctx)
	_, errs["Snapshot"] = r.Snapshot(ctx)
	return errs
}

func refusesAfterClose(t *testing.T, f *fixture) {
	b := f.empty(t)
	commit(t, b, userEntry("e1", "", "x"))
	v, err := f.driver.View(t.Context(), f.path("s1"))
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]store.Reader{"owner": b, "reader": v} {
		if err := r.Close(); err != nil {
			t.Fatalf("close the %s: %v", name, err)
		}
		for call, err := range queries(t.Context(), r) {
			if !errors.Is(err, store.ErrClosed) {
				t.Errorf("%s of a closed %s: got %v, want ErrClosed", call, name, err)
			}
		}
	}
	for name, tx := range map[string]store.Tx{"commit": {valueA.Set(raw("1"))}, "empty commit": {}, "invalid commit": {valueA.Set(raw("{"))}} {
		if _, err := b.Commit(t.Context(), tx); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s after close: got %v, want ErrClosed", name, err)
		}
	}
}

func survivesReopen(t *testing.T, f *fixture) {
	b := f.empty(t)
	commit(t, b,
		userEntry("e1", "", "x"), customEntry("e2", "e1", "app.c", raw(`{"a":1}`)), compactionEntry("e3", "e2"),
		valueA.Set(raw("null")), store.NewValue[string]("app", "").Set(""), listA.Append(raw("1")), listA.Append(raw(`"2"`)),
		usageWrite("u1", "e1", 3, 0.1), usageWrite("u2", "", 4, 0.2))
	commit(t, b, valueB.Set(raw("1")), valueB.Delete(), listB.Append(raw("1")), listB.Delete())
	want, wantHeader := contents(t, b), b.Header()
	b = f.reopen(t, b)
	same(t, "contents", contents(t, b), want)
	same(t, "header", b.Header(), wantHeader)
}

func sequenceGoesOn(t *testing.T, f *fixture) {
	b := f.empty(t)
	last := int64(0)
	for range 3 {
		res := commit(t, b, valueA.Set(raw("1")), listA.Append(raw("2")))
		if res.FirstSeq <= last {
			t.Fatalf("seq %d after %d", res.FirstSeq, last)
		}
		last = res.Seqs[1]
		b = f.reopen(t, b)
	}
}

func sequenceOfDeleted(t *testing.T, f *fixture) {
	b := f.empty(t)
	commit(t, b, listA.Append(raw("1")), valueA.Set(raw("1")))
	res := commit(t, b, listA.Delete(), valueA.Delete())
	b = f.reopen(t, b)
	if next := commit(t, b, listA.Append(raw("2"))); next.FirstSeq <= res.Seqs[1] {
		t.Fatalf("seq %d was given again after %d", next.FirstSeq, res.Seqs[1])
	}
}

func secondOwner(t *testing.T, f *fixture) {
	b := f.empty(t)
	second, err := f.driver.Open(t.Context(), f.path("s1"), f.options())
	var held *store.Held
	if !errors.As(err, &held) {
		if second != nil {
			_ = second.Close()
		}
		t.Fatalf("second open: got %v, want *Held", err)
	}
	if held.Lease.PID <= 0 || !held.Lease.Live {
		t.Fatalf("lease %+v does not name its live owner", held.Lease)
	}
	commit(t, b, valueA.Set(raw("1")))
	b = f.reopen(t, b)
	commit(t, b, valueA.Set(raw("2")))
}

func readerBesideOwner(t *testing.T, f *fixture) {
	b := f.empty(t)
	res := commit(t, b, userEntry("e1", "", "x"), valueA.Set(raw("1")))
	v, err := f.driver.View(t.Context(), f.path("s1"))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	same(t, "contents", contents(t, v), contents(t, b))
	same(t, "header", v.Header(), b.Header())
	commit(t, b, valueB.Set(raw("2")))
	wantValue(t, v, valueA.Address(), res.Seqs[1], "1")

	h, err := f.driver.Header(t.Context(), f.path("s1"))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "header read alone", h, b.Header())
}

func absentStore(t *testing.T, f *fixture) {
	ctx, path := t.Context(), f.path("absent")
	_, openErr := f.driver.Open(ctx, path, f.options())
	_, viewErr := f.driver.View(ctx, path)
	_, headerErr := f.driver.Header(ctx, path)
	for call, err := range map[string]error{"open": openErr, "view": viewErr, "header": headerErr, "delete": f.driver.Delete(ctx, path, f.options())} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v, want fs.ErrNotExist", call, err)
		}
	}
}

func checkSound(t *testing.T, f *fixture) {
	b := f.empty(t)
	commit(t, b, valueA.Set(raw("1")))
	if err := b.Check(t.Context()); err != nil {
		t.Fatalf("check: %v", err)
	}
}

func deletesStore(t *testing.T, f *fixture) {
	for _, id := range []string{"a", "b"} {
		f.build(t, id, store.NewSnapshot(header(id), nil))
		b := f.open(t, id)
		commit(t, b, valueA.Set(raw("1")))
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.driver.Delete(t.Context(), f.path("a"), f.options()); err != nil {
		t.Fatalf("delete: %v", err)
	}
	paths, err := f.driver.List(t.Context(), f.dir)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "stores that are left", paths, []string{f.path("b")})
	if _, err := f.driver.View(t.Context(), f.path("a")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("view of the deleted store: got %v, want fs.ErrNotExist", err)
	}
}

func refusesDeleteOwned(t *testing.T, f *fixture) {
	b := f.empty(t)
	var held *store.Held
	if err := f.driver.Delete(t.Context(), f.path("s1"), f.options()); !errors.As(err, &held) {
		t.Fatalf("delete of an owned store: got %v, want *Held", err)
	}
	commit(t, b, valueA.Set(raw("1")))
}
