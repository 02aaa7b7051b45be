package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-run/drover/pkg/store"
)

// fileState is what a reader must not change.
type fileState struct {
	content []byte
	changed time.Time
	mode    fs.FileMode
}

// stateOf reads the file of a session that this process does not have open.
func stateOf(t testing.TB, path string) fileState {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fileState{content, info.ModTime(), info.Mode()}
}

// lookAll reads a session in every way that takes no lease.
func lookAll(path string) map[string]error {
	errs := map[string]error{}
	r, err := Driver{}.View(ctx, path)
	errs["View"] = err
	if err == nil {
		_, err := r.ScanEntries(ctx, store.EntryQuery{})
		errs["View"] = errors.Join(err, r.Close())
	}
	_, errs["Header"] = Driver{}.Header(ctx, path)
	_, errs["Lease"] = Driver{}.Lease(ctx, path)
	return errs
}

// killedSession is a session whose owner was killed: its commits are in the WAL
// alone.
func killedSession(t *testing.T) string {
	t.Helper()
	path := newSession(t)
	c := startChild(t, "hold", path)
	c.line(t)
	c.kill(t)
	if holds, err := walHolds(path); err != nil || !holds {
		t.Fatalf("the WAL holds commits: %v, %v", holds, err)
	}
	return path
}

// TestReadersChangeNothing: not the content, not the times, not the mode (D10).
func TestReadersChangeNothing(t *testing.T) {
	for name, make := range map[string]func(*testing.T) string{
		"a closed session":              func(t *testing.T) string { return newSession(t) },
		"a session of a killed process": killedSession,
	} {
		t.Run(name, func(t *testing.T) {
			path := make(t)
			before := stateOf(t, path)
			for what, err := range lookAll(path) {
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			after := stateOf(t, path)
			if !bytes.Equal(before.content, after.content) || !before.changed.Equal(after.changed) || before.mode != after.mode {
				t.Errorf("the file was changed by readers")
			}
			open(t, path, store.OpenOptions{})
		})
	}
}

// TestViewIsOneMoment: a view neither sees nor hinders the commits after it.
func TestViewIsOneMoment(t *testing.T) {
	path := newSession(t)
	b := open(t, path, store.OpenOptions{})
	commit(t, b, marks.Append("1"), userEntry("e1", ""))
	old, err := openReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	commit(t, b, marks.Append("2"), userEntry("e2", "e1"))
	young, err := openReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer young.Close()
	for _, c := range []struct {
		name     string
		r        *reader
		marks    []string
		messages int64
	}{{"old", old, []string{"1"}, 1}, {"young", young, []string{"1", "2"}, 2}} {
		if got := readMarks(t, c.r); !slices.Equal(got, c.marks) {
			t.Errorf("the %s view sees %v, want %v", c.name, got, c.marks)
		}
		snap, err := c.r.Snapshot(ctx)
		if err != nil {
			t.Fatal(err)
		}
		records, err := store.Collect(snap)
		if err != nil {
			t.Fatal(err)
		}
		stats, err := c.r.Stats(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(records) != 2*len(c.marks) || stats.MessageCount != c.messages || snap.NextSeq != int64(1+len(records)) {
			t.Errorf("the %s view: %d records, %d messages, next number %d, want %d marks' worth of each",
				c.name, len(records), stats.MessageCount, snap.NextSeq, len(c.marks))
		}
	}
}

// TestViewTellsTheLeaseOfItsMoment: who owned the session then, not who does now.
func TestViewTellsTheLeaseOfItsMoment(t *testing.T) {
	path := newSession(t)
	before, err := openReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	b := open(t, path, store.OpenOptions{Owner: store.OwnerInfo{Command: "prompt"}})
	during, err := openReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer during.Close()
	mustClose(t, b)
	if l, err := before.Lease(ctx); err != nil || l != nil && l.Live {
		t.Errorf("before anybody owned it: %+v, %v", l, err)
	}
	if l, err := during.Lease(ctx); err != nil || l == nil || !l.Live || l.Command != "prompt" {
		t.Errorf("while it was owned: %+v, %v", l, err)
	}
}

// TestReadsInsideASnapshot: a view answers other queries between two records.
func TestReadsInsideASnapshot(t *testing.T) {
	path := newSession(t)
	b := open(t, path, store.OpenOptions{})
	commit(t, b, userEntry("e1", ""), userEntry("e2", "e1"), marks.Append("1"))
	mustClose(t, b)
	r, err := openReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	snap, err := r.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for rec, err := range snap.Records {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Stats(ctx); err != nil {
			t.Fatal(err)
		}
		n++
		if rec.Seq != int64(n) {
			t.Errorf("record %d has number %d", n, rec.Seq)
		}
	}
	if n != 3 {
		t.Errorf("%d records, want 3", n)
	}
	again, err := store.Collect(snap)
	if err != nil || len(again) != 3 {
		t.Errorf("read again: %d records, %v, want 3", len(again), err)
	}
}

func childView(args []string) error {
	for what, err := range lookAll(args[0]) {
		fmt.Printf("%s: permission=%v error=%v\n", what, errors.Is(err, fs.ErrPermission), err)
	}
	return nil
}

// childCramped looks where no file may grow beyond a few bytes, as on a full disk.
func childCramped(args []string) error {
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 100, Max: 100}); err != nil {
		return err
	}
	return childView(args)
}

// TestFullDisk: the files that WAL mode needs beside a session need room; one that has
// no commits in its WAL is read without them.
func TestFullDisk(t *testing.T) {
	look := func(path string) []string {
		t.Helper()
		c := startChild(t, "cramped", path)
		lines := []string{c.line(t), c.line(t), c.line(t)}
		slices.Sort(lines)
		return lines
	}
	path := newSession(t)
	if err := removeSides(Driver{}.fs(), path); err != nil {
		t.Fatal(err)
	}
	for _, line := range look(path) {
		if !strings.HasSuffix(line, "error=<nil>") {
			t.Error(line)
		}
	}
	path = killedSession(t)
	if err := os.Remove(shmPath(path)); err != nil {
		t.Fatal(err)
	}
	for _, line := range look(path) {
		if !strings.Contains(line, "the disk is full and "+walPath(path)+" holds commits") {
			t.Error(line)
		}
	}
}

// TestReadOnlyFolder looks at sessions as a user who may write nothing (D10).
func TestReadOnlyFolder(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become somebody else")
	}
	// The test binary lies in a folder that only root may enter.
	dir, err := os.MkdirTemp("", "drover-reader")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	exe := filepath.Join(dir, "reader.test")
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(exe, program, 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	look := func(t *testing.T, path string) []string {
		t.Helper()
		cmd := exec.Command(exe, path)
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		c := startCommand(t, cmd, "view")
		lines := []string{c.line(t), c.line(t), c.line(t)}
		slices.Sort(lines)
		return lines
	}
	readable := func(t *testing.T, path string) string {
		t.Helper()
		to := filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "_"))
		if err := os.Mkdir(to, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range names(t, filepath.Dir(path)) {
			raw, err := os.ReadFile(filepath.Join(filepath.Dir(path), name))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(to, name), raw, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return filepath.Join(to, filepath.Base(path))
	}
	ok := []string{"Header: permission=false error=<nil>", "Lease: permission=false error=<nil>", "View: permission=false error=<nil>"}

	t.Run("a closed session is read as it is", func(t *testing.T) {
		path := readable(t, newSession(t))
		if got := look(t, path); !slices.Equal(got, ok) {
			t.Errorf("got %q", got)
		}
		if got := names(t, filepath.Dir(path)); !slices.Equal(got, []string{"s1.db"}) {
			t.Errorf("the folder holds %v", got)
		}
	})
	t.Run("commits in a WAL that cannot be opened are said to be there", func(t *testing.T) {
		path := readable(t, killedSession(t))
		if err := os.Remove(shmPath(path)); err != nil {
			t.Fatal(err)
		}
		for _, line := range look(t, path) {
			if !strings.Contains(line, "permission=true") || !strings.Contains(line, "copy all files") {
				t.Errorf("got %q, want a permission error with the hint to copy all files", line)
			}
		}
	})
	t.Run("an unreadable session is a permission error", func(t *testing.T) {
		path := readable(t, newSession(t))
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, line := range look(t, path) {
			if !strings.Contains(line, "permission=true") {
				t.Errorf("got %q, want a permission error", line)
			}
		}
	})
	t.Run("beside a live owner the present state is read", func(t *testing.T) {
		path := readable(t, newSession(t))
		b := open(t, path, store.OpenOptions{})
		commit(t, b, marks.Append("x"))
		if got := look(t, path); !slices.Equal(got, ok) {
			t.Errorf("got %q", got)
		}
		commit(t, b, marks.Append("y"))
	})
}
