package fsx_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/drover-run/drover/internal/fsx"
)

// holdEnv makes this test binary lock a file, say so, and hold it until its
// standard input closes.
const holdEnv = "FSX_TEST_HOLD"

func TestMain(m *testing.M) {
	if path := os.Getenv(holdEnv); path != "" {
		hold(path)
	}
	os.Exit(m.Run())
}

func hold(path string) {
	l, err := fsx.TryLock(path)
	if err != nil || l == nil {
		fmt.Fprintln(os.Stderr, "lock:", l, err)
		os.Exit(1)
	}
	fmt.Println("locked")
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// child runs a process that holds the lock.
func child(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdEnv+"="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); strings.TrimSpace(line) != "locked" {
		t.Fatalf("child said %q: %v", line, err)
	}
	return cmd
}

func mustLock(t *testing.T, path string) *fsx.Lock {
	t.Helper()
	l, err := fsx.TryLock(path)
	if err != nil || l == nil {
		t.Fatalf("lock: %v, %v", l, err)
	}
	return l
}

func wantBusy(t *testing.T, path string) {
	t.Helper()
	if l, err := fsx.TryLock(path); err != nil || l != nil {
		t.Errorf("second lock: %v, %v", l, err)
	}
}

func TestLockExcludes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.lock")
	l := mustLock(t, path)
	wantBusy(t, path)
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	l = mustLock(t, path)
	if err := l.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("lock file after Remove: %v", err)
	}
}

func TestLockDiesWithItsProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.lock")
	cmd := child(t, path)
	wantBusy(t, path)
	if held, _, err := fsx.Probe(path); !held || err != nil {
		t.Errorf("probe: %v, %v", held, err)
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if held, _, err := fsx.Probe(path); held || err != nil {
		t.Errorf("probe after death: %v, %v", held, err)
	}
	if err := mustLock(t, path).Unlock(); err != nil {
		t.Fatal(err)
	}
}

func TestLockNotices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.lock")
	l := mustLock(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if named, err := l.Named(); named || err != nil {
		t.Errorf("unlinked: %v, %v", named, err)
	}
	other := mustLock(t, path)
	if named, err := l.Named(); named || err != nil {
		t.Errorf("replaced: %v, %v", named, err)
	}
	if named, err := other.Named(); !named || err != nil {
		t.Errorf("the new one: %v, %v", named, err)
	}
}

func TestProbeCreatesNothing(t *testing.T) {
	dir := t.TempDir()
	if held, info, err := fsx.Probe(filepath.Join(dir, "s.lock")); held || info != nil || err != nil {
		t.Errorf("probe: %v, %q, %v", held, info, err)
	}
	wantFolder(t, dir, map[string]string{})
}

func TestLockInfo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.lock")
	if err := os.WriteFile(path, []byte("a longer remark of an earlier owner"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := mustLock(t, path)
	if b, err := l.Info(); string(b) != "a longer remark of an earlier owner" || err != nil {
		t.Errorf("info: %q, %v", b, err)
	}
	if err := l.SetInfo([]byte("mine")); err != nil {
		t.Fatal(err)
	}
	if held, b, err := fsx.Probe(path); !held || string(b) != "mine" || err != nil {
		t.Errorf("probe: %v, %q, %v", held, b, err)
	}
	wantMode(t, path, 0o600)
}

// Holders that remove the file as they leave must not let two others in: one on
// the file that was unlinked, one on the next.
func TestLockExcludesWhileItsFileComesAndGoes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.lock")
	var holders, taken atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for taken.Load() < 2000 {
				l, err := fsx.TryLock(path)
				if err != nil {
					t.Error(err)
					return
				}
				if l == nil {
					continue
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d holders at once", n)
				}
				taken.Add(1)
				runtime.Gosched()
				holders.Add(-1)
				if err := l.Remove(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// A link to nothing is no lock file, and nothing is made where it points.
func TestLockRefusesADanglingLink(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.lock")
	for _, target := range []string{filepath.Join(dir, "elsewhere"), filepath.Join(dir, "no", "folder")} {
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		lock, err := fsx.TryLock(path)
		var bad *fs.PathError
		if lock != nil || !errors.As(err, &bad) || bad.Path != path || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("to %s: got %v, %v, want a *fs.PathError of %s", target, lock, err, path)
		}
		if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s was made", target)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	// One to a file is followed: whoever put it there moved the locks elsewhere.
	if err := os.WriteFile(filepath.Join(dir, "there"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "there"), path); err != nil {
		t.Fatal(err)
	}
	lock, err := fsx.TryLock(path)
	if lock == nil || err != nil {
		t.Fatalf("a link to a file: %v, %v", lock, err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
}
