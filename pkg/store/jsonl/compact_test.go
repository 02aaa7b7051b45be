package jsonl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/internal/fsx/fsxtest"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
)

var (
	stateValue = store.NewValue[rawJSON]("pi.op.state", "op")
	bigValue   = store.NewValue[rawJSON]("app", "big")
	frames     = store.NewList[int]("frames", "op")
)

// wasted is an owned session with every kind of dead write, an unknown header
// field, and a deletion as its newest record.
func wasted(t testing.TB, d jsonl.Driver, o store.OpenOptions) (string, store.Backend) {
	t.Helper()
	path := file(t, strings.TrimSuffix(headerLine, "}\n")+`,"generation":3,"novel":{"b":1,"a":"\ud83d"}}`+"\n")
	b := openWith(t, d, path, o)
	waste(t, b)
	return path, b
}

func waste(t testing.TB, b store.Backend) {
	t.Helper()
	commit(t, b, user("e1", "", "one"), ticks.Append(1), ticks.Append(2))
	commit(t, b, store.InsertUsage(store.NewUsage{ID: "u1", EntryID: "e1", Usage: message.Usage{Input: 1}, Details: raw(`[ "\/" ]`)}), user("e2", "e1", "two"))
	for i := range 20 {
		commit(t, b, stateValue.Set(raw(fmt.Sprintf(`{"phase":%d}`, i))), frames.Append(i))
	}
	commit(t, b, bigValue.Set(raw(`"`+strings.Repeat("x", 10_000)+`"`)), store.SessionName().Set("small"))
	commit(t, b, ticks.Append(3))
	commit(t, b, frames.Delete(), stateValue.Delete())
}

func compact(t testing.TB, b store.Backend, o store.CompactOptions) store.Compaction {
	t.Helper()
	c, err := b.(store.Compacter).Compact(t.Context(), o)
	if err != nil {
		t.Fatalf("compact: %v", err)
	}
	return c
}

func fileSize(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func TestCompact(t *testing.T) {
	path, b := wasted(t, jsonl.Driver{}, options())
	before, size, content := records(t, b), fileSize(t, path), read(t, path)
	old := view(t, path)
	snap, err := b.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link.jsonl")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}

	planned, err := old.(store.CompactionPlanner).PlanCompaction(t.Context(), store.CompactOptions{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "file after a plan", read(t, path), content)
	same(t, "not dead enough", compact(t, b, store.CompactOptions{MinDead: 0.99}),
		store.Compaction{BytesBefore: size, BytesAfter: size, RecordsBefore: 50, RecordsAfter: 50})
	done := compact(t, b, store.CompactOptions{MinDead: 0.1})
	same(t, "done", done, store.Compaction{BytesBefore: size, BytesAfter: fileSize(t, path), RecordsBefore: 50, RecordsAfter: 8, Changed: true})
	same(t, "announced", planned, done)

	same(t, "state", records(t, b), before)
	late, err := store.Collect(snap)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "snapshot from before", late, before)
	same(t, "view from before", records(t, old), before)
	same(t, "new view", records(t, view(t, link)), before)
	same(t, "lines", soundLines(t, path), 9)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	header, _, _ := bytes.Cut(read(t, path), []byte("\n"))
	same(t, "header", string(header),
		`{"v":4,"kind":"header","id":"s","storageVersion":1,"createdAt":1700000000000,"generation":3,"novel":{"b":1,"a":"\ud83d"},"nextSeq":51}`)
	if err := b.Check(t.Context()); err != nil {
		t.Error(err)
	}

	page, err := b.ReadList(t.Context(), ticks.Address(), store.ListQuery{Cursor: 2})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "list after the cursor", page, []store.ListElement{{Seq: 3, Value: raw("2")}, {Seq: 48, Value: raw("3")}})

	again := compact(t, b, store.CompactOptions{})
	same(t, "again", again, store.Compaction{BytesBefore: done.BytesAfter, BytesAfter: done.BytesAfter, RecordsBefore: 8, RecordsAfter: 8})

	// What the dropped deletion had is not given twice, here or after a reopen.
	closeStore(t, b)
	b = open(t, path)
	same(t, "reopened", records(t, b), before)
	same(t, "next number", commit(t, b, ticks.Append(4)).Seqs, []int64{51})
	compact(t, b, store.CompactOptions{})
	same(t, "number after that", commit(t, b, ticks.Append(5)).Seqs, []int64{52})
	after := records(t, b)
	closeStore(t, b)
	same(t, "at the end", records(t, view(t, path)), after)
}

// A torn tail and a last line without a newline are dead or alive as they are
// for every owner.
func TestCompactRaggedEnd(t *testing.T) {
	const value = `{"kind":"value","op":"set","seq":1,"namespace":"n","key":"k","value":1}`
	for _, tail := range []string{value, value + "\n" + `{"kind":"value","op":"set","seq":2,"namesp`} {
		path := file(t, headerLine+tail)
		b := open(t, path)
		before := records(t, b)
		c := compact(t, b, store.CompactOptions{})
		if c.Changed != (c.BytesAfter < c.BytesBefore) || c.BytesAfter != fileSize(t, path) {
			t.Errorf("%+v", c)
		}
		commit(t, b, store.SessionName().Set("x"), store.SessionName().Delete())
		same(t, "records", records(t, b), before)
		soundLines(t, path)
	}
}

// Whichever call fails, the old session or the new one is there, complete, and
// its owner goes on in it (B14, B53).
func TestB53FailedCompaction(t *testing.T) {
	tests := []struct {
		name string
		rule fsxtest.Rule
		new  bool // the new file has the name already
	}{
		{"no temporary", fsxtest.Rule{Op: fsxtest.Open, Err: syscall.EROFS}, false},
		{"disk full", fsxtest.Rule{Op: fsxtest.Write, Err: syscall.ENOSPC}, false},
		{"short write", fsxtest.Rule{Op: fsxtest.Write, Short: 200, Err: syscall.ENOSPC}, false},
		{"mode", fsxtest.Rule{Op: fsxtest.Chmod, Err: syscall.EPERM}, false},
		{"sync", fsxtest.Rule{Op: fsxtest.Sync, Err: syscall.EIO}, false},
		{"close", fsxtest.Rule{Op: fsxtest.Close, Err: syscall.EIO}, false},
		{"second open", fsxtest.Rule{Op: fsxtest.Open, Skip: 1, Err: syscall.EMFILE}, false},
		{"rename", fsxtest.Rule{Op: fsxtest.Rename, Err: syscall.EIO}, false},
		{"sync of the folder", fsxtest.Rule{Op: fsxtest.SyncDir, Err: syscall.EIO}, true},
	}
	for _, tt := range tests {
		for _, power := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.name, " power ", power), func(t *testing.T) {
				var fsys fsxtest.FS
				o := options()
				o.PowerSafe = power
				path, b := wasted(t, jsonl.Driver{FS: &fsys}, o)
				before, content := records(t, b), read(t, path)
				fsys.Fail(tt.rule)
				_, err := b.(store.Compacter).Compact(t.Context(), store.CompactOptions{})
				if !errors.Is(err, tt.rule.Err) {
					t.Fatalf("got %v, want %v", err, tt.rule.Err)
				}
				fsys.Heal()
				if bytes.Equal(read(t, path), content) == tt.new {
					t.Errorf("new file there: want %v", tt.new)
				}
				same(t, "left over", temps(t, path), []string(nil))
				same(t, "state", records(t, b), before)
				if err := b.Check(t.Context()); err != nil {
					t.Error(err)
				}
				_, err = b.Commit(t.Context(), store.Tx{user("e3", "e2", "three")})
				if refused := tt.new && power; (err != nil) != refused {
					t.Fatalf("commit after it: %v, refused %v", err, refused)
				}
				after := records(t, b)
				closeStore(t, b)
				same(t, "reopened", records(t, open(t, path)), after)
			})
		}
	}
}

// temps are the temporary files beside a session.
func temps(t testing.TB, path string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if fsx.IsTemp(e.Name()) {
			out = append(out, e.Name())
		}
	}
	return out
}

// Queries may run beside compactions and get whole answers from either file.
func TestQueriesBesideCompaction(t *testing.T) {
	_, b := wasted(t, jsonl.Driver{}, options())
	want := records(t, b)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 5 {
			for i := range 20 {
				commitInBackground(t, b, store.Tx{stateValue.Set(raw(strconv.Itoa(i)))})
			}
			commitInBackground(t, b, store.Tx{stateValue.Delete()})
			if c, err := b.(store.Compacter).Compact(context.Background(), store.CompactOptions{}); err != nil || !c.Changed {
				t.Errorf("compact: %+v, %v", c, err)
			}
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		got := slices.DeleteFunc(records(t, b), func(r store.Record) bool { return r.Address == stateValue.Address() })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		if _, _, err := b.Value(t.Context(), bigValue.Address()); err != nil {
			t.Fatal(err)
		}
		if b.Header().Generation != 3 {
			t.Fatal(b.Header())
		}
	}
}

func commitInBackground(t testing.TB, b store.Backend, tx store.Tx) {
	if _, err := b.Commit(context.Background(), tx); err != nil {
		t.Error(err)
	}
}

// BenchmarkCompact drops a dead half beside 1,000 entries of about 1 KB.
func BenchmarkCompact(b *testing.B) {
	path := bigSession(b, 1000)
	s := open(b, path)
	text := raw(`"` + strings.Repeat("x", 1<<20) + `"`)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		commit(b, s, bigValue.Set(text))
		commit(b, s, bigValue.Set(raw("1")))
		b.StartTimer()
		if c := compact(b, s, store.CompactOptions{}); !c.Changed {
			b.Fatal(c)
		}
	}
}
