package jsonl_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
)

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

// Lines of any length (bug B04).
func TestB04LongLines(t *testing.T) {
	for _, size := range []int{70 << 10, 1_100_000, 20 << 20} {
		path := fresh(t)
		b := open(t, path)
		text := strings.Repeat("0123456789abcdef", size/16)
		commit(t, b, user("e1", "", "small"))
		commit(t, b, user("e2", "e1", text), store.NewValue[string]("app", "big").Set(text))
		commit(t, b, user("e3", "e2", "after"))
		closeStore(t, b)
		for _, r := range []store.Reader{view(t, path), open(t, path)} {
			entries, err := r.ScanBranch(t.Context(), store.BranchQuery{Start: "e3"})
			if err != nil || len(entries) != 3 {
				t.Fatalf("%d bytes: %d entries, %v", size, len(entries), err)
			}
			if got := entries[1].Message().Text(); got != text {
				t.Errorf("%d bytes: text of %d", size, len(got))
			}
			big, _, err := store.Get(t.Context(), r, store.NewValue[string]("app", "big"))
			if err != nil || big.Value != text {
				t.Errorf("%d bytes: value of %d, %v", size, len(big.Value), err)
			}
			closeStore(t, r)
		}
	}
}

// One commit of many writes is one long line.
func TestManyWritesInOneCommit(t *testing.T) {
	path := fresh(t)
	b := open(t, path)
	var tx store.Tx
	parent := ""
	for i := range 5000 {
		id := "e" + string(rune('0'+i%10)) + strings.Repeat("x", i)[:i%7] + time.Duration(i).String()
		tx = append(tx, user(id, parent, "x"))
		parent = id
	}
	commit(t, b, tx...)
	want := records(t, b)
	closeStore(t, b)
	same(t, "lines", soundLines(t, path), 2)
	same(t, "records", records(t, view(t, path)), want)
}

// A file stamped under a later clock opens, and stamps do not fall (bug B12).
func TestB12ClockGoesBack(t *testing.T) {
	path := fresh(t)
	clock := now
	d := jsonl.Driver{}
	o := store.OpenOptions{Now: func() int64 { return clock }}
	b := openWith(t, d, path, o)
	same(t, "first", commit(t, b, user("e1", "", "x")).Timestamp, now)
	clock -= 3_600_000
	same(t, "an hour earlier", commit(t, b, user("e2", "e1", "x")).Timestamp, now)
	clock = now + 50
	same(t, "a value, later", commit(t, b, store.SessionName().Set("x")).Timestamp, now+50)
	clock = now
	same(t, "earlier again", commit(t, b, user("e2b", "e2", "x")).Timestamp, now+50)
	closeStore(t, b)
	b = openWith(t, d, path, o)
	same(t, "after reopen", commit(t, b, user("e3", "e2", "x")).Timestamp, now+50)
	closeStore(t, b)
	entries, err := view(t, path).ScanEntries(t.Context(), store.EntryQuery{})
	if err != nil || len(entries) != 4 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestModes(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := filepath.Join(t.TempDir(), "a", "repo")
	path := filepath.Join(dir, "s.jsonl")
	h := store.Header{ID: "s", StorageVersion: 1, CreatedAt: now}
	if err := (jsonl.Driver{}).Build(t.Context(), path, store.NewSnapshot(h, nil), store.BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	open(t, path)
	for name, want := range map[string]fs.FileMode{dir: fs.ModeDir | 0o700, filepath.Dir(dir): fs.ModeDir | 0o700, path: 0o600, path + ".lock": 0o600} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "mode of "+name, info.Mode(), want)
	}
}

// What a view may not do: change the file, its times, or the folder; wait for
// the owner (D9, D10).
func TestViewChangesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.jsonl")
	write(t, path, []byte(headerLine+`{"kind":"value","op":"set","seq":1,"namespace":"n","key":"k","value":1}`+"\n"+`{"torn`))
	stamp := time.Unix(1_600_000_000, 0)
	if err := os.Chtimes(path, stamp, stamp); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	before := read(t, path)
	v := view(t, path)
	same(t, "records", len(records(t, v)), 1)
	if _, err := (jsonl.Driver{}).Lease(t.Context(), path); err != nil {
		t.Error(err)
	}
	closeStore(t, v)
	if !bytes.Equal(read(t, path), before) {
		t.Error("the file changed")
	}
	info, err := os.Stat(path)
	if err != nil || !info.ModTime().Equal(stamp) {
		t.Errorf("modified %v, %v", info.ModTime(), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("folder: %v, %v", left, err)
	}
}

// A view keeps its moment while the owner goes on, and while the file is
// replaced or deleted.
func TestViewIsOneMoment(t *testing.T) {
	path := fresh(t)
	b := open(t, path)
	commit(t, b, user("e1", "", "one"), store.SessionName().Set("then"))
	want := records(t, b)
	v := view(t, path)
	commit(t, b, user("e2", "e1", "two"), store.SessionName().Set("now"))
	same(t, "beside the owner", records(t, v), want)
	closeStore(t, b)
	h := store.Header{ID: "s", StorageVersion: 1, CreatedAt: now}
	if err := (jsonl.Driver{}).Build(t.Context(), path, store.NewSnapshot(h, nil), store.BuildOptions{Replace: true}); err != nil {
		t.Fatal(err)
	}
	same(t, "after a replacement", records(t, v), want)
	if err := (jsonl.Driver{}).Delete(t.Context(), path, options()); err != nil {
		t.Fatal(err)
	}
	same(t, "after a deletion", records(t, v), want)
}

// Views that are taken while an owner writes, and cuts torn tails, see whole
// commits.
func TestViewsBesideAWriter(t *testing.T) {
	path := fresh(t)
	done := make(chan error, 1)
	go func() {
		done <- func() error {
			parent := ""
			for i := range 200 {
				b, err := jsonl.Driver{}.Open(t.Context(), path, options())
				if err != nil {
					return err
				}
				id := "e" + string(rune('A'+i))
				tx := store.Tx{user(id, parent, strings.Repeat("y", i)), store.LaneLeaf("main").Set(store.LeafID(id))}
				if _, err := b.Commit(t.Context(), tx); err != nil {
					return err
				}
				if err := b.Close(); err != nil {
					return err
				}
				parent = id
				// What a killed owner would leave.
				f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
				if err != nil {
					return err
				}
				_, err = f.WriteString(`[{"kind":"entry","seq":` + strings.Repeat("9", i%40))
				if err := errors.Join(err, f.Close()); err != nil {
					return err
				}
			}
			return nil
		}()
	}()
	for {
		v, err := jsonl.Driver{}.View(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		leaf, ok, err := store.Get(t.Context(), v, store.LaneLeaf("main"))
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			if branch, err := v.ScanBranch(t.Context(), store.BranchQuery{Start: string(leaf.Value)}); err != nil || len(branch) == 0 {
				t.Fatalf("branch of %s: %v", leaf.Value, err)
			}
		}
		closeStore(t, v)
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

func TestList(t *testing.T) {
	dir := t.TempDir()
	target := file(t, headerLine)
	for name, make := range map[string]func(path string) error{
		"b.jsonl":               func(p string) error { return os.WriteFile(p, []byte(headerLine), 0o600) },
		"empty.jsonl":           func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"unreadable.jsonl":      func(p string) error { return os.WriteFile(p, []byte("x"), 0) },
		"link.jsonl":            func(p string) error { return os.Symlink(target, p) },
		"dangling.jsonl":        func(p string) error { return os.Symlink("nowhere", p) },
		"folder.jsonl":          func(p string) error { return os.Mkdir(p, 0o700) },
		"folderlink.jsonl":      func(p string) error { return os.Symlink(".", p) },
		"pipe.jsonl":            func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"b.jsonl.bak":           func(p string) error { return os.WriteFile(p, []byte(headerLine), 0o600) },
		"b.jsonl.lock":          func(p string) error { return os.WriteFile(p, nil, 0o600) },
		".b.jsonl.tmp-0123abcd": func(p string) error { return os.WriteFile(p, []byte(headerLine), 0o600) },
		".x.tmp-0123abcd.jsonl": func(p string) error { return os.WriteFile(p, []byte(headerLine), 0o600) },
		"other.db":              func(p string) error { return os.WriteFile(p, nil, 0o600) },
	} {
		if err := make(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := jsonl.Driver{}.List(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range []string{"b.jsonl", "empty.jsonl", "link.jsonl", "unreadable.jsonl"} {
		want = append(want, filepath.Join(dir, name))
	}
	same(t, "sessions", got, want)
	if _, err := (jsonl.Driver{}).List(t.Context(), filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent folder: %v", err)
	}
}

// Nothing blocks on a pipe, and a folder is no session.
func TestNotAFile(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.jsonl")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, dir} {
		for call, err := range opens(t, path) {
			var corrupt *store.Corrupt
			if !errors.As(err, &corrupt) || corrupt.Msg != "not a regular file" {
				t.Errorf("%s of %s: %v", call, path, err)
			}
		}
	}
}

// A large file of another kind is not read whole to find that out.
func TestHeaderOfAForeignFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(1<<40), f.Close()); err != nil {
		t.Fatal(err)
	}
	var corrupt *store.Corrupt
	if _, err := (jsonl.Driver{}).Header(t.Context(), path); !errors.As(err, &corrupt) || corrupt.Line != 1 {
		t.Errorf("got %v", err)
	}
}

// hookFS calls hook before the n-th read of any file.
type hookFS struct {
	fsx.OS
	n    int
	hook func()
}

type hookFile struct {
	fsx.File
	fs *hookFS
}

func (h *hookFS) OpenFile(name string, flag int, perm fs.FileMode) (fsx.File, error) {
	f, err := h.OS.OpenFile(name, flag, perm)
	return &hookFile{f, h}, err
}

func (f *hookFile) ReadAt(b []byte, off int64) (int, error) {
	if f.fs.n--; f.fs.n == 0 {
		f.fs.hook()
	}
	return f.File.ReadAt(b, off)
}

// A torn tail that the owner cuts and writes over while a view reads it never
// shows, not even as the front half of a line that happens to be well-formed.
func TestViewOfATailThatIsCutMeanwhile(t *testing.T) {
	for read := range 12 {
		t.Run(fmt.Sprint("before read ", read+1), func(t *testing.T) { viewWhileCut(t, read+1) })
	}
}

func viewWhileCut(t *testing.T, read int) {
	const readSize = 256 << 10
	line := func(seq, size int) string {
		head := fmt.Sprintf(`{"kind":"value","op":"set","seq":%d,"namespace":"n","key":"k%d","value":"`, seq, seq)
		return head + strings.Repeat("x", size-len(head)-3) + "\"}\n"
	}
	good := headerLine + line(1, readSize-1000)
	path := file(t, good+line(2, 3000)[:2900])
	fsys := &hookFS{n: read}
	fsys.hook = func() {
		b := open(t, path)
		for range 2 {
			commit(t, b, store.NewValue[string]("n", "new").Set(strings.Repeat("y", 1100)))
		}
		closeStore(t, b)
	}
	v, err := jsonl.Driver{FS: fsys}.View(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for _, r := range records(t, v) {
		if text := string(r.Value); strings.Contains(text, "xy") || r.Address.Key == "k2" {
			t.Errorf("%s: a value of two halves", r.Address.Key)
		}
	}
}
