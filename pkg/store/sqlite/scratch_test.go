package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/fsx/fsxtest"
	"github.com/drover-run/drover/pkg/store"
)

// fullSession is a session with records of every kind in two branches, whose text
// says whose it is.
func fullSession(id string, entries int) *store.Snapshot {
	var records []store.Record
	add := func(r store.Record) {
		r.Seq = int64(len(records) + 1)
		if r.Entry != nil {
			r.Entry.Seq = r.Seq
		}
		if r.Usage != nil {
			r.Usage.Seq = r.Seq
		}
		records = append(records, r)
	}
	for i := range entries {
		parent := ""
		if i > 0 {
			parent = fmt.Sprint(id, "-", i-1-i%7/6) // every seventh is a second child
		}
		payload := fmt.Sprintf(`{"message":{"role":"user","content":"text of %s %s","timestamp":1}}`, id, strings.Repeat("x", i*i%977))
		add(store.Record{Kind: store.KindEntry, Entry: &store.Entry{
			Structure: store.Structure{ID: fmt.Sprint(id, "-", i), ParentID: parent, Timestamp: int64(i), Type: store.TypeMessage}, Payload: []byte(payload),
		}})
		add(store.Record{Kind: store.KindUsage, Usage: &store.UsageRow{ID: fmt.Sprint(id, "-u", i), EntryID: fmt.Sprint(id, "-", i), Usage: []byte(`{"input":1}`), Details: []byte(`{"of":"` + id + `"}`)}})
	}
	add(store.Record{Kind: store.KindValue, Op: store.OpSet, Address: store.Address{Namespace: "n", Key: "k"}, Value: []byte(`"value of ` + id + `"`)})
	add(store.Record{Kind: store.KindList, Op: store.OpAppend, Address: store.Address{Namespace: "n", Key: "l"}, Value: []byte(`"element of ` + id + `"`)})
	snap := store.NewSnapshot(header(id), records)
	snap.Size = int64(entries*200 + 1)
	return snap
}

// rowsOf are all rows of a database, table by table.
func rowsOf(t *testing.T, path string) map[string][]string {
	t.Helper()
	h, err := openHandle(path, dsnImmutable)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.close(); err != nil {
			t.Error(err)
		}
	}()
	out := map[string][]string{}
	for _, table := range []string{"entries", "scalar_values", "list_values", "usage_ledger", "session", "writer_lease", "branch_entries", "branch_meta", "sqlite_schema"} {
		columns := "*"
		if table == "sqlite_schema" {
			columns = "type, name, sql"
		}
		out[table] = allRows(t, h, fmt.Sprintf("SELECT %s FROM %s ORDER BY 1, 2", columns, table))
	}
	return out
}

func allRows(t *testing.T, h *handle, text string) []string {
	t.Helper()
	rows, err := h.conn.QueryContext(ctx, text)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for rows.Next() {
		values := make([]any, len(names))
		for i := range values {
			values[i] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		var line []string
		for _, v := range values {
			line = append(line, fmt.Sprintf("%T %v", *v.(*any), *v.(*any)))
		}
		out = append(out, strings.Join(line, "|"))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestScratchBuildsTheSame: what is put together in memory, one session after the
// other, is what a build in the file would have made, a whole database in WAL mode,
// and holds nothing of the sessions before it.
func TestScratchBuildsTheSame(t *testing.T) {
	dir := t.TempDir()
	scratch := &Scratch{}
	defer func() { mustClose(t, scratch) }()
	snaps := []*store.Snapshot{
		fullSession("long", 700), fullSession("none", 0), fullSession("one", 1), fullSession("some", 40), fullSession("forked", indexPage+100),
	}
	for i, snap := range snaps {
		id := snap.Header.ID
		got, want := filepath.Join(dir, id+".db"), filepath.Join(dir, id+"-plain.db")
		if err := (Driver{Scratch: scratch}).Build(ctx, got, snap, store.BuildOptions{}); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		if err := (Driver{}).Build(ctx, want, snap, store.BuildOptions{}); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		image, err := os.ReadFile(got)
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range snaps[:i] {
			if text := "of " + other.Header.ID; bytes.Contains(image, []byte(text)) {
				t.Errorf("%s holds %q, which is another session's", id, text)
			}
		}
		if info, err := os.Stat(got); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v, want mode 0600", id, info, err)
		}
		if diff := cmp.Diff(rowsOf(t, want), rowsOf(t, got)); diff != "" {
			t.Errorf("%s (-in the file +in memory):\n%s", id, diff)
		}
		// The first open writes into the file, so that its header is trusted or not.
		b := open(t, got, store.OpenOptions{})
		commit(t, b, marks.Append("x"))
		if got := readMarks(t, b); !slices.Equal(got, []string{"x"}) {
			t.Errorf("%s: marks %v after a commit", id, got)
		}
		mustClose(t, b)
		var sound string
		if ask(t, got, "PRAGMA integrity_check", &sound); sound != "ok" {
			t.Errorf("%s: integrity_check says %s", id, sound)
		}
	}
	got := slices.DeleteFunc(names(t, dir), func(n string) bool { return strings.HasSuffix(n, "-wal") || strings.HasSuffix(n, "-shm") })
	if len(got) != 2*len(snaps) {
		t.Errorf("the folder holds %v", got)
	}
}

// TestScratchAfterFailures: a build that ends anywhere leaves nothing of its session
// in the memory of the next.
func TestScratchAfterFailures(t *testing.T) {
	scratch := &Scratch{}
	defer func() { mustClose(t, scratch) }()
	full := &fsxtest.FS{}
	full.Fail(fsxtest.Rule{Op: fsxtest.Write, Err: syscall.ENOSPC})
	broken := errors.New("broken source")
	cut := fullSession("cut", 30)
	whole := cut.Records
	cut.Records = func(yield func(store.Record, error) bool) {
		n := 0
		for r, err := range whole {
			if n++; n == 20 {
				err = broken
			}
			if !yield(r, err) {
				return
			}
		}
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	dir := t.TempDir()
	for name, c := range map[string]struct {
		ctx  context.Context
		d    Driver
		snap *store.Snapshot
		want error
	}{
		"a full disk":         {ctx, Driver{Scratch: scratch, system: full}, fullSession("full", 9), syscall.ENOSPC},
		"a source that fails": {ctx, Driver{Scratch: scratch}, cut, broken},
		"a cancelled context": {canceled, Driver{Scratch: scratch}, fullSession("late", 9), context.Canceled},
	} {
		if err := c.d.Build(c.ctx, filepath.Join(dir, "bad.db"), c.snap, store.BuildOptions{}); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		if got := names(t, dir); len(got) > 0 {
			t.Errorf("%s: the folder holds %v", name, got)
		}
		good, plain := filepath.Join(dir, "good.db"), filepath.Join(dir, "plain.db")
		if err := (Driver{Scratch: scratch}).Build(ctx, good, fullSession("good", 12), store.BuildOptions{}); err != nil {
			t.Fatalf("after %s: %v", name, err)
		}
		if err := (Driver{}).Build(ctx, plain, fullSession("good", 12), store.BuildOptions{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(rowsOf(t, plain), rowsOf(t, good)); diff != "" {
			t.Errorf("after %s (-in the file +in memory):\n%s", name, diff)
		}
		if err := errors.Join(os.Remove(good), os.Remove(plain)); err != nil {
			t.Fatal(err)
		}
	}
}
