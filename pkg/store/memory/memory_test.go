package memory_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/memory"
	"github.com/drover-run/drover/pkg/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t testing.TB) (store.Driver, string) { return &memory.Driver{}, t.TempDir() })
}

const path = "/repo/s.mem"

func header() store.Header {
	return store.Header{ID: "s", StorageVersion: store.StorageVersion, CreatedAt: 1}
}

func build(t *testing.T, d *memory.Driver, o store.BuildOptions) {
	t.Helper()
	if err := d.Build(t.Context(), path, store.NewSnapshot(header(), nil), o); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, d *memory.Driver, o store.OpenOptions) store.Backend {
	t.Helper()
	b, err := d.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestOpenWaitsForTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d memory.Driver
		build(t, &d, store.BuildOptions{})
		first := open(t, &d, store.OpenOptions{Owner: store.OwnerInfo{Command: "prompt"}})

		begun := time.Now()
		_, err := d.Open(t.Context(), path, store.OpenOptions{Wait: time.Second})
		var held *store.Held
		if !errors.As(err, &held) || held.Lease.Command != "prompt" || held.Lease.Fence != 1 {
			t.Errorf("got %v", err)
		}
		if took := time.Since(begun); took != time.Second {
			t.Errorf("waited %s", took)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := d.Open(ctx, path, store.OpenOptions{Wait: time.Hour}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}

		go func() {
			time.Sleep(time.Minute)
			_ = first.Close()
		}()
		second := open(t, &d, store.OpenOptions{Wait: time.Hour})
		if took := time.Since(begun); took != time.Minute+2*time.Second {
			t.Errorf("waited %s", took)
		}
		lease, err := d.Lease(t.Context(), path)
		if err != nil || lease == nil || lease.Fence != 2 {
			t.Errorf("lease %+v, %v", lease, err)
		}
		if err := second.Close(); err != nil {
			t.Fatal(err)
		}
		if lease, err := d.Lease(t.Context(), path); err != nil || lease != nil {
			t.Errorf("lease of a closed store %+v, %v", lease, err)
		}
	})
}

func TestCheckNoticesReplacement(t *testing.T) {
	var d memory.Driver
	build(t, &d, store.BuildOptions{})
	b := open(t, &d, store.OpenOptions{})
	build(t, &d, store.BuildOptions{Replace: true})
	want := &store.Lost{Path: path, Reason: "replaced"}
	var lost *store.Lost
	if err := b.Check(t.Context()); !errors.As(err, &lost) || *lost != *want {
		t.Errorf("replaced: %v", err)
	}
	if err := d.Delete(t.Context(), path, store.OpenOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := b.Check(t.Context()); !errors.As(err, &lost) || lost.Reason != "deleted" {
		t.Errorf("deleted: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Check(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestOpenRefusesANewerVersion(t *testing.T) {
	var d memory.Driver
	h := header()
	h.StorageVersion = store.StorageVersion + 1
	if err := d.Build(t.Context(), path, store.NewSnapshot(h, nil), store.BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	var newer *store.NewerVersion
	if b, err := d.Open(t.Context(), path, store.OpenOptions{}); !errors.As(err, &newer) || b != nil {
		t.Errorf("got %v, %v", b, err)
	}
}

func entry(seq int64, id, parent string) store.Record {
	return store.Record{Kind: store.KindEntry, Seq: seq, Entry: &store.Entry{
		Structure: store.Structure{ID: id, ParentID: parent, Seq: seq, Timestamp: 1, Type: store.TypeMessage},
		Payload:   json.RawMessage(`{"message":{}}`),
	}}
}

func usage(seq int64, id string) store.Record {
	return store.Record{Kind: store.KindUsage, Seq: seq, Usage: &store.UsageRow{ID: id, Seq: seq, Usage: json.RawMessage(`{}`)}}
}

func TestReplayRefuses(t *testing.T) {
	tests := []struct {
		name    string
		records []store.Record
		want    string
	}{
		{"a number that falls", []store.Record{entry(2, "a", ""), entry(1, "b", "")}, "sequence number 1 follows 2"},
		{"a number that repeats", []store.Record{entry(2, "a", ""), usage(2, "b")}, "sequence number 2 follows 2"},
		{"number zero", []store.Record{entry(0, "a", "")}, "sequence number 0 follows 0"},
		{"an entry id twice", []store.Record{entry(1, "a", ""), entry(2, "a", "")}, "id a is used twice"},
		{"an entry under a row's id", []store.Record{usage(1, "a"), entry(2, "a", "")}, "id a is used twice"},
		{"a row under an entry's id", []store.Record{entry(1, "a", ""), usage(2, "a")}, "id a is used twice"},
		{"a missing parent", []store.Record{entry(1, "a", "x")}, "entry a: parent x is no earlier entry"},
		{"an entry as its own parent", []store.Record{entry(1, "a", "a")}, "entry a: parent a is no earlier entry"},
		{"a row as parent", []store.Record{usage(1, "u"), entry(2, "a", "u")}, "entry a: parent u is no earlier entry"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := memory.FromSnapshot(store.NewSnapshot(header(), tt.records))
			if err == nil || !strings.HasSuffix(err.Error(), ": "+tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestViewsAreCopies(t *testing.T) {
	var d memory.Driver
	build(t, &d, store.BuildOptions{})
	b := open(t, &d, store.OpenOptions{})
	defer b.Close()
	addr := store.NewList[string]("app", "l")
	commit := func(tx ...store.Write) {
		t.Helper()
		if _, err := b.Commit(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
	}
	commit(addr.Append("1"), store.SessionName().Set("old"), store.InsertEntry(store.CustomEntry("a", "", "t", nil)))
	v, err := d.View(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	snap, err := v.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before, err := store.Collect(snap)
	if err != nil {
		t.Fatal(err)
	}
	commit(addr.Append("2"), store.SessionName().Set("new"), store.InsertEntry(store.CustomEntry("b", "a", "t", nil)))
	if snap, err = v.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := store.Collect(snap)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" || len(after) != 3 {
		t.Errorf("%d records, the view changed (-before +after):\n%s", len(after), diff)
	}
}

func TestReadersBesideAWriter(t *testing.T) {
	var d memory.Driver
	build(t, &d, store.BuildOptions{})
	b := open(t, &d, store.OpenOptions{})
	defer b.Close()
	const n = 200
	done := make(chan error)
	go func() {
		parent := ""
		for i := range n {
			id := string(rune('A' + i))
			_, err := b.Commit(t.Context(), store.Tx{store.InsertEntry(store.CustomEntry(id, parent, "t", nil)), store.LaneLeaf("main").Set(store.LeafID(id))})
			if err != nil {
				done <- err
				return
			}
			parent = id
		}
		done <- nil
	}()
	for {
		leaf, ok, err := store.Get(t.Context(), b, store.LaneLeaf("main"))
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			// Whoever sees the leaf sees its whole path.
			path, err := b.ScanBranch(t.Context(), store.BranchQuery{Start: string(leaf.Value)})
			if err != nil || path[0].ID != string(leaf.Value) || path[len(path)-1].ParentID != "" {
				t.Fatalf("path of %d from %s: %v", len(path), leaf.Value, err)
			}
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}
