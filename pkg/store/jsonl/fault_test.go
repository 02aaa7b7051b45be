package jsonl_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/internal/fsx/fsxtest"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/storetest"
)

// A commit that fails leaves the file at the last good one and ends writing
// (spec §1.4, §4.8; bugs B06, B23).
func TestB06FailedCommit(t *testing.T) {
	tests := []struct {
		name  string
		power bool
		rules []fsxtest.Rule
		torn  bool // the file cannot even be cut: the next owner has to
	}{
		{name: "disk full", rules: []fsxtest.Rule{{Op: fsxtest.Write, Err: syscall.ENOSPC}}},
		{name: "short write", rules: []fsxtest.Rule{{Op: fsxtest.Write, Short: 20, Err: syscall.ENOSPC}}},
		{name: "I/O error", rules: []fsxtest.Rule{{Op: fsxtest.Write, Short: 5, Err: syscall.EIO}}},
		{name: "all but the newline", rules: []fsxtest.Rule{{Op: fsxtest.Write, Short: 1 << 20, Err: syscall.EIO}}},
		{name: "sync fails", power: true, rules: []fsxtest.Rule{{Op: fsxtest.Sync, Err: syscall.EIO}}},
		{name: "short write that cannot be cut", torn: true, rules: []fsxtest.Rule{
			{Op: fsxtest.Write, Short: 20, Err: syscall.ENOSPC}, {Op: fsxtest.Truncate, Err: syscall.EIO, Sticky: true},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := fresh(t)
			var fsys fsxtest.FS
			o := options()
			o.PowerSafe = tt.power
			b := openWith(t, jsonl.Driver{FS: &fsys}, path, o)
			commit(t, b, user("e1", "", "x"), store.SessionName().Set("good"))
			good, before := read(t, path), records(t, b)
			for _, r := range tt.rules {
				fsys.Fail(r)
			}
			cause := tt.rules[0].Err
			_, err := b.Commit(t.Context(), store.Tx{store.SessionName().Set("bad"), user("e2", "e1", "y")})
			var pathErr *os.PathError
			if !errors.Is(err, cause) || !errors.As(err, &pathErr) || pathErr.Path != path {
				t.Errorf("commit: %v, want one that wraps %v and names the file", err, cause)
			}
			fsys.Heal()
			same(t, "what can be read", records(t, b), before)
			if _, err := b.Commit(t.Context(), store.Tx{store.SessionName().Set("later")}); !errors.Is(err, cause) {
				t.Errorf("commit after the fault: %v, want one that wraps %v", err, cause)
			}
			closeStore(t, b)
			got := read(t, path)
			if !bytes.HasPrefix(got, good) || (len(got) > len(good)) != tt.torn {
				t.Errorf("the file has %d bytes, %d were good", len(got), len(good))
			}
			b = open(t, path)
			same(t, "after reopen", records(t, b), before)
			commit(t, b, user("e2", "e1", "again"))
			closeStore(t, b)
			soundLines(t, path)
		})
	}
}

func TestTornTailThatCannotBeCut(t *testing.T) {
	path := file(t, headerLine+`{"kind":"val`)
	var fsys fsxtest.FS
	fsys.Fail(fsxtest.Rule{Op: fsxtest.Truncate, Err: syscall.EROFS})
	b := openWith(t, jsonl.Driver{FS: &fsys}, path, options())
	if _, err := b.Commit(t.Context(), store.Tx{store.SessionName().Set("x")}); !errors.Is(err, syscall.EROFS) {
		t.Errorf("got %v", err)
	}
	same(t, "file", string(read(t, path)), headerLine+`{"kind":"val`)
}

// A refused transaction is no fault.
func TestInvalidWriteIsNoFault(t *testing.T) {
	path := fresh(t)
	b := open(t, path)
	before := read(t, path)
	var invalid *store.InvalidWrite
	if _, err := b.Commit(t.Context(), store.Tx{store.SessionName().Set("x"), user("e1", "absent", "y")}); !errors.As(err, &invalid) || invalid.Index != 1 {
		t.Fatalf("got %v", err)
	}
	same(t, "file", read(t, path), before)
	commit(t, b, store.SessionName().Set("x"))
}

func TestFailedBuild(t *testing.T) {
	rules := map[string]fsxtest.Rule{
		"disk full":    {Op: fsxtest.Write, Short: 10, Err: syscall.ENOSPC},
		"sync fails":   {Op: fsxtest.Sync, Err: syscall.EIO},
		"rename fails": {Op: fsxtest.Rename, Err: syscall.EIO},
		"no temporary": {Op: fsxtest.Open, Err: syscall.EROFS},
	}
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s.jsonl")
			var fsys fsxtest.FS
			fsys.Fail(rule)
			h := store.Header{ID: "s", StorageVersion: 1, CreatedAt: now}
			err := jsonl.Driver{FS: &fsys}.Build(t.Context(), path, store.NewSnapshot(h, nil), store.BuildOptions{})
			if !errors.Is(err, rule.Err) {
				t.Errorf("got %v", err)
			}
			if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestPowerSafeSyncsEveryCommit(t *testing.T) {
	for _, power := range []bool{false, true} {
		var fsys fsxtest.FS
		path := fresh(t)
		o := options()
		o.PowerSafe = power
		b := openWith(t, jsonl.Driver{FS: &fsys}, path, o)
		commit(t, b, store.SessionName().Set("1"))
		commit(t, b, store.SessionName().Set("2"), user("e1", "", "x"))
		commit(t, b)
		closeStore(t, b)
		want := []string{"open", "open", "write", "write", "close", "close"}
		if power {
			want = []string{"open", "open", "write", "sync", "write", "sync", "close", "close"}
		}
		got := slices.DeleteFunc(fsys.Calls(), func(call string) bool { return call == string(fsxtest.Read) })
		// The header is read through a descriptor of its own, closed at once.
		same(t, "calls", sorted(got), sorted(want))
	}
}

// The file of an owner can be changed behind its back; Check tells (D12).
func TestCheck(t *testing.T) {
	tests := []struct {
		reason string
		change func(t *testing.T, path string)
	}{
		{"deleted", func(t *testing.T, path string) { remove(t, path) }},
		{"replaced", func(t *testing.T, path string) {
			content := read(t, path)
			remove(t, path)
			write(t, path, content)
		}},
		{"truncated", func(t *testing.T, path string) {
			if err := os.Truncate(path, 10); err != nil {
				t.Fatal(err)
			}
		}},
		{"appended to", func(t *testing.T, path string) { write(t, path, append(read(t, path), '\n')) }},
		{"fenced", func(t *testing.T, path string) { remove(t, path+".lock") }},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			path := fresh(t)
			b := open(t, path)
			commit(t, b, store.SessionName().Set("x"))
			if err := b.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			tt.change(t, path)
			var lost *store.Lost
			if err := b.Check(t.Context()); !errors.As(err, &lost) || lost.Reason != tt.reason {
				t.Errorf("got %v", err)
			}
			closeStore(t, b)
			if err := b.Check(t.Context()); !errors.Is(err, store.ErrClosed) {
				t.Errorf("closed: %v", err)
			}
		})
	}
}

// A torn tail is no other hand's work.
func TestCheckWithTornTail(t *testing.T) {
	path := file(t, headerLine+`{"kind":"val`)
	b := open(t, path)
	if err := b.Check(t.Context()); err != nil {
		t.Error(err)
	}
	commit(t, b, store.SessionName().Set("x"))
	if err := b.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// Every call of every operation fails once (B06, B23, B53).
func TestB23FaultMatrix(t *testing.T) {
	storetest.RunFaults(t, func(fsys fsx.FS) store.Driver { return jsonl.Driver{FS: fsys} })
}
