package jsonl_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
)

// killer is a file system that ends its process at one of its steps. A write is
// two: before it, and when half of it is done.
type killer struct {
	fsx.OS
	left *atomic.Int64
}

func (k killer) step() {
	if k.left.Add(-1) < 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func (k killer) OpenFile(name string, flag int, perm fs.FileMode) (fsx.File, error) {
	k.step()
	f, err := k.OS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return killerFile{f, k}, nil
}

func (k killer) Rename(oldName, newName string) error {
	k.step()
	return k.OS.Rename(oldName, newName)
}

func (k killer) Remove(name string) error {
	k.step()
	return k.OS.Remove(name)
}

func (k killer) SyncDir(name string) error {
	k.step()
	return k.OS.SyncDir(name)
}

type killerFile struct {
	fsx.File
	k killer
}

func (f killerFile) Write(b []byte) (int, error) {
	f.k.step()
	n, err := f.File.Write(b[:len(b)/2])
	if err != nil {
		return n, err
	}
	f.k.step()
	more, err := f.File.Write(b[n:])
	return n + more, err
}

func (f killerFile) Sync() error {
	f.k.step()
	return f.File.Sync()
}

func (f killerFile) Close() error {
	f.k.step()
	return f.File.Close()
}

const childSteps = "JSONL_TEST_STEPS"

// compactUntilKilled compacts the session and, when it lives, says so.
func compactUntilKilled(path string) int {
	steps, err := strconv.ParseInt(os.Getenv(childSteps), 10, 64)
	if err != nil {
		return 1
	}
	k := killer{left: new(atomic.Int64)}
	k.left.Store(1 << 30)
	ctx := context.Background()
	b, err := jsonl.Driver{FS: k}.Open(ctx, path, options())
	if err != nil {
		return 1
	}
	k.left.Store(steps)
	if _, err := b.(store.Compacter).Compact(ctx, store.CompactOptions{}); err != nil {
		return 1
	}
	k.left.Store(1 << 30)
	fmt.Println("compacted")
	return 0
}

// Whichever step kill -9 comes at, the session is complete, what is left over is
// no session, and the next compaction removes it (B53).
func TestB53KilledCompaction(t *testing.T) {
	path, b := wasted(t, jsonl.Driver{}, options())
	want, content := records(t, b), read(t, path)
	closeStore(t, b)
	states := make(map[string]int)
	for n := 0; ; n++ {
		path := file(t, string(content))
		t.Setenv(childSteps, strconv.Itoa(n))
		p := start(t, "compact", path)
		line, _ := p.out.ReadString('\n')
		_ = p.Wait()
		if line == "" && p.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("child %d ended by itself: %v", n, p.ProcessState)
		}
		same(t, fmt.Sprint("a view, killed at ", n), records(t, view(t, path)), want)
		listed, err := jsonl.Driver{}.List(t.Context(), filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		same(t, "listed", listed, []string{path})
		now := read(t, path)
		left := temps(t, path)
		states[fmt.Sprint(len(left), " left, old ", cmp.Equal(now, content))]++
		same(t, "problems", len(problemsOf(t, path)), len(left))
		b := open(t, path)
		compact(t, b, store.CompactOptions{})
		same(t, "left over after the next one", temps(t, path), []string(nil))
		same(t, "the next owner's", records(t, b), want)
		same(t, "next number", commit(t, b, ticks.Append(4)).Seqs, []int64{51})
		closeStore(t, b)
		if line != "" {
			break
		}
	}
	for _, s := range []string{"0 left, old true", "1 left, old true", "0 left, old false"} {
		if states[s] == 0 {
			t.Errorf("no kill left %q: %v", s, states)
		}
	}
}

func problemsOf(t testing.TB, path string) []store.Problem {
	t.Helper()
	return slices.Collect(view(t, path).(store.Checker).Problems(t.Context()))
}

// A temporary file of another session is its own affair, even of one whose name
// goes on like ours.
func TestSweepLeavesOthersAlone(t *testing.T) {
	path, b := wasted(t, jsonl.Driver{}, options())
	ours := ".s.jsonl.tmp-0123abcd"
	others := []string{".s.jsonl.tmp-x.jsonl.tmp-0123abcd", ".ss.jsonl.tmp-0123abcd"}
	for _, name := range append(others, ours) {
		write(t, filepath.Join(filepath.Dir(path), name), []byte(headerLine))
	}
	leftover := store.Problem{Code: "leftover", Severity: store.SeverityWarning, Where: ours, Message: "a temporary file of an interrupted replacement"}
	same(t, "owner's problems", slices.Collect(b.(store.Checker).Problems(t.Context())), []store.Problem{leftover})
	same(t, "beside a live owner", problemsOf(t, path), []store.Problem(nil))
	compact(t, b, store.CompactOptions{})
	same(t, "after it", temps(t, path), others)
	closeStore(t, b)
	write(t, path+".lock", []byte("{garbage"))
	same(t, "lock", problemsOf(t, path), []store.Problem{
		{Code: "lease", Severity: store.SeverityWarning, Where: "s.jsonl.lock", Message: "the lock file cannot be read"},
	})
	same(t, "a lock file is no obstacle", len(records(t, open(t, path))), 8)
}

// intruder changes the session while its replacement is being written.
type intruder struct {
	fsx.OS
	intrude func()
}

func (i intruder) OpenFile(name string, flag int, perm fs.FileMode) (fsx.File, error) {
	if flag&os.O_EXCL != 0 {
		i.intrude()
	}
	return i.OS.OpenFile(name, flag, perm)
}

// A file that is not the one that was read is not replaced (B14).
func TestB14CompactionIsAbandoned(t *testing.T) {
	line := []byte(`{"kind":"value","op":"set","seq":900,"namespace":"n","key":"k","value":1}` + "\n")
	for reason, change := range map[string]func(t *testing.T, path string){
		"appended to": func(t *testing.T, path string) { write(t, path, append(read(t, path), line...)) },
		"replaced": func(t *testing.T, path string) {
			content := read(t, path)
			remove(t, path)
			write(t, path, append(content, line...))
		},
		"fenced": func(t *testing.T, path string) { remove(t, path+".lock") },
		// The lock was taken away, and another process is the owner for a commit.
		"appended to by another": func(t *testing.T, path string) {
			remove(t, path+".lock")
			other := start(t, "commit", path)
			other.fence(t)
			if err := other.Wait(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(reason, func(t *testing.T) {
			var theirs []byte
			var path string
			i := intruder{intrude: func() {
				change(t, path)
				theirs = read(t, path)
			}}
			var b store.Backend
			path, b = wasted(t, jsonl.Driver{FS: &i}, options())
			_, err := b.(store.Compacter).Compact(t.Context(), store.CompactOptions{})
			var lost *store.Lost
			if !errors.As(err, &lost) || !strings.HasPrefix(reason, lost.Reason) {
				t.Errorf("got %v", err)
			}
			same(t, "file", read(t, path), theirs)
			same(t, "left over", temps(t, path), []string(nil))
		})
	}
}

// A session whose file is mostly dead is compacted when it is opened, and after a
// deletion; what is small or alive is left in peace, and a view changes nothing.
func TestCompactionByItself(t *testing.T) {
	path := fresh(t)
	b := open(t, path)
	commit(t, b, user("e1", "", "kept"))
	text := raw(`"` + strings.Repeat("x", 800<<10) + `"`)
	for range 14 {
		commit(t, b, bigValue.Set(text))
	}
	before, size := records(t, b), fileSize(t, path)
	if size < 14*800<<10 {
		t.Fatalf("compacted without a deletion: %d bytes", size)
	}
	closeStore(t, b)
	same(t, "a view", records(t, view(t, path)), before)
	same(t, "size after it", fileSize(t, path), size)

	b = open(t, path)
	if got := fileSize(t, path); got > 810<<10 {
		t.Errorf("%d bytes after an open", got)
	}
	same(t, "after an open", records(t, b), before)

	for range 10 {
		commit(t, b, bigValue.Set(text))
	}
	commit(t, b, bigValue.Delete())
	if got := fileSize(t, path); got > 1000 {
		t.Errorf("%d bytes after a deletion", got)
	}
	same(t, "after a deletion", records(t, b), before[:1])
	same(t, "next number", commit(t, b, user("e2", "e1", "next")).Seqs, []int64{27})

	// Nine megabytes dead are not enough when more is alive.
	other := store.NewValue[rawJSON]("app", "other")
	commit(t, b, other.Set(raw(`"`+strings.Repeat("y", 16<<20)+`"`)), bigValue.Set(raw(`"`+strings.Repeat("x", 9<<20)+`"`)))
	size = fileSize(t, path)
	commit(t, b, bigValue.Delete())
	if fileSize(t, path) < size {
		t.Error("compacted while most of it was alive")
	}
}
