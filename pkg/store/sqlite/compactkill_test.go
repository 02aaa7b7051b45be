package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/store"
)

// killer is a file system that ends its process before one of its calls.
type killer struct {
	fsx.OS
	left *atomic.Int64
}

func (k killer) count() {
	if k.left.Add(-1) < 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func (k killer) OpenFile(name string, flag int, perm fs.FileMode) (fsx.File, error) {
	k.count()
	return k.OS.OpenFile(name, flag, perm)
}

func (k killer) Rename(oldName, newName string) error {
	k.count()
	return k.OS.Rename(oldName, newName)
}

func (k killer) RenameNew(oldName, newName string) error {
	k.count()
	return k.OS.RenameNew(oldName, newName)
}

func (k killer) Remove(name string) error {
	k.count()
	return k.OS.Remove(name)
}

func (k killer) SyncDir(name string) error {
	k.count()
	return k.OS.SyncDir(name)
}

// childCompact compacts a session with a file system that ends it before the
// n-th call.
func childCompact(args []string) error {
	n, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return err
	}
	k := killer{left: &atomic.Int64{}}
	k.left.Store(n)
	b, err := Driver{system: k}.Open(ctx, args[0], store.OpenOptions{})
	if err != nil {
		return err
	}
	if _, err := b.Commit(ctx, store.Tx{marks.Append("3")}); err != nil {
		return err
	}
	if _, err := b.(store.Compacter).Compact(ctx, store.CompactOptions{}); err != nil {
		return err
	}
	fmt.Println("compacted")
	return b.Close()
}

// TestB53KilledCompactor: whichever step kill -9 comes before, the session is
// complete, and the next owner has it at once.
func TestB53KilledCompactor(t *testing.T) {
	for n := 0; ; n++ {
		path := wasted(t)
		c := startChild(t, "compact", path, strconv.Itoa(n))
		line, _ := c.out.ReadString('\n')
		_ = c.cmd.Wait()
		if c.err.Len() > 0 {
			t.Fatalf("child %d: %s", n, c.err)
		}
		r, err := openReader(path)
		if err != nil {
			t.Fatalf("killed before call %d: %v", n, err)
		}
		want := []string{"1", "2", "3"}
		if got := readMarks(t, r); !slices.Equal(got, want) {
			t.Errorf("killed before call %d: a reader sees %v, want %v", n, got, want)
		}
		mustClose(t, r)
		b := open(t, path, store.OpenOptions{})
		if b.claim.fence != 4 && line == "" {
			t.Errorf("killed before call %d: fence %d, want 4", n, b.claim.fence)
		}
		goesOn(t, b, n, want)
		if line == "compacted\n" {
			if n < 6 {
				t.Errorf("only %d calls were made", n)
			}
			return
		}
	}
}

// goesOn is the owner after the one that was killed before call n, who finds seen,
// writes, compacts, and leaves nothing lying about.
func goesOn(t *testing.T, b *backend, n int, seen []string) {
	t.Helper()
	commit(t, b, marks.Append("4"), userEntry("d2", "d"))
	if got := readMarks(t, b); !slices.Equal(got, append(slices.Clone(seen), "4")) {
		t.Errorf("killed before call %d: the next owner sees %v", n, got)
	}
	for _, p := range problemsOf(t, b.path) {
		if p.Code != "leftover" {
			t.Errorf("killed before call %d: %+v", n, p)
		}
	}
	if _, err := b.Compact(ctx, store.CompactOptions{}); err != nil {
		t.Errorf("killed before call %d: the next compaction: %v", n, err)
	}
	mustClose(t, b)
	if got := names(t, filepath.Dir(b.path)); !slices.Equal(got, []string{"s1.db"}) {
		t.Errorf("killed before call %d: after the next compaction the folder holds %v", n, got)
	}
}

// childFullCompact compacts a session while no file may grow beyond a size, says
// how that ends, and either goes on once there is room again, or is killed when
// it would tidy up: so the half of a copy stays as a kill in the middle of it
// leaves it.
func childFullCompact(args []string) error {
	size, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return err
	}
	k := killer{left: &atomic.Int64{}}
	k.left.Store(1 << 30)
	b, err := Driver{system: k}.Open(ctx, args[0], store.OpenOptions{})
	if err != nil {
		return err
	}
	if _, err := b.Commit(ctx, store.Tx{marks.Append("3")}); err != nil {
		return err
	}
	var room syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &room); err != nil {
		return err
	}
	full := room
	full.Cur = size
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full); err != nil {
		return err
	}
	killed := args[2] == "killed"
	if killed {
		k.left.Store(1) // the copy is created
	}
	_, err = b.(store.Compacter).Compact(ctx, store.CompactOptions{})
	if killed {
		k.left.Store(0)
		k.count()
	}
	if restored := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &room); restored != nil {
		return restored
	}
	if err != nil {
		var failed *IOError
		fmt.Println("failed:", errors.As(err, &failed))
	} else {
		fmt.Println("compacted")
	}
	if _, err := b.Commit(ctx, store.Tx{marks.Append("4")}); err != nil {
		return err
	}
	return b.Close()
}

// TestB06CompactionWithoutRoom: wherever in the copy the disk is full, the
// session is what it was and its owner goes on; a kill there leaves half a copy
// that the next compaction removes (B53, D21).
func TestB06CompactionWithoutRoom(t *testing.T) {
	const page = 8192
	for _, how := range []string{"goes on", "killed"} {
		halves := 0
		for size, done := 0, false; !done; size += 3 * page {
			if size > 100*page {
				t.Fatalf("%s: never compacted", how)
			}
			path := wasted(t)
			c := startChild(t, "full", path, strconv.Itoa(size), how)
			line, _ := c.out.ReadString('\n')
			_ = c.cmd.Wait()
			want := []string{"1", "2", "3"}
			switch {
			case c.err.Len() > 0 || line == "failed: false\n":
				t.Fatalf("%s with %d bytes: %s%s", how, size, line, c.err)
			case how == "killed":
				for _, name := range names(t, filepath.Dir(path)) {
					if info, err := os.Stat(filepath.Join(filepath.Dir(path), name)); fsx.IsTemp(name) && err == nil {
						done = info.Size() < int64(size) // it was killed after the copy
						halves++
					}
				}
			default:
				done = line == "compacted\n"
				want = append(want, "4")
				if got := names(t, filepath.Dir(path)); !slices.Equal(got, []string{"s1.db"}) {
					t.Errorf("%s with %d bytes: the folder holds %v", how, size, got)
				}
			}
			b := open(t, path, store.OpenOptions{})
			if got := readMarks(t, b); !slices.Equal(got, want) {
				t.Errorf("%s with %d bytes: the next owner sees %v, want %v", how, size, got, want)
			}
			if _, err := b.Compact(ctx, store.CompactOptions{}); err != nil {
				t.Errorf("%s with %d bytes: the next compaction: %v", how, size, err)
			}
			mustClose(t, b)
			if got := names(t, filepath.Dir(path)); !slices.Equal(got, []string{"s1.db"}) {
				t.Errorf("%s with %d bytes: after the next compaction the folder holds %v", how, size, got)
			}
			if found := problemsOf(t, path); len(found) > 0 {
				t.Errorf("%s with %d bytes: %v", how, size, found)
			}
		}
		if how == "killed" && halves < 2 {
			t.Errorf("%d kills left a copy", halves)
		}
	}
}

// TestContenderBesideACompaction: whoever would take over from an owner that
// holds the write lock waits, and is refused in the end.
func TestContenderBesideACompaction(t *testing.T) {
	path := newSession(t)
	setClaim(t, path, claim{owner: "dead", fence: 7, process: deadProcess(t)})
	h, err := openHandle(path, dsnOwner)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	err = h.write(func() error {
		var held *store.Held
		if _, err := openOwner(ctx, path, store.OpenOptions{}); !errors.As(err, &held) || held.Lease.Fence != 7 {
			t.Errorf("open: got %v, want *Held", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if b := open(t, path, store.OpenOptions{}); b.claim.fence != 8 {
		t.Errorf("fence %d, want 8", b.claim.fence)
	}
}
