package rewrite_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/rewrite"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
)

// childSteps names the step of the file system at which a child kills itself.
const childSteps = "REWRITE_TEST_STEPS"

func TestMain(m *testing.M) {
	if steps := os.Getenv(childSteps); steps != "" {
		os.Exit(rewriteUntilKilled(os.Args[len(os.Args)-1], steps))
	}
	os.Exit(m.Run())
}

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

func rewriteUntilKilled(path, steps string) int {
	n, err := strconv.ParseInt(steps, 10, 64)
	if err != nil {
		return 1
	}
	k := killer{left: new(atomic.Int64)}
	k.left.Store(1 << 30)
	ctx := context.Background()
	b, err := jsonl.Driver{FS: k}.Open(ctx, path, store.OpenOptions{})
	if err != nil {
		return 1
	}
	s := store.NewSession(b, store.SessionOptions{})
	k.left.Store(n)
	if err := redact(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	k.left.Store(1 << 30)
	fmt.Println("rewritten")
	return 0
}

func redact(ctx context.Context, s *store.Session) error {
	rules, err := rewrite.ParseRules(strings.NewReader(marker + " ==> " + gone))
	if err != nil {
		return err
	}
	snap, err := s.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer snap.Close()
	p, err := rewrite.Make(ctx, snap, &rewrite.Selection{Rules: rules}, nil)
	if err != nil {
		return err
	}
	r := &rewrite.Rewrite{Plan: p, Proof: rewrite.NewProof(rules, nil), Checks: []store.Check{engine.Check}}
	return r.Execute(ctx, s)
}

// Whichever step kill -9 comes at, the session is the old one or the new one; the
// next run finishes, and leaves neither the text nor a file behind (B53). SQLite's
// steps are those of every exchange, which its own tests kill.
func TestB53KilledRewrite(t *testing.T) {
	d := jsonl.Driver{}
	w := newWorld(t, d)
	for range 20 {
		w.entry(store.TypeMessage, "", fmt.Sprintf(`{"message":{"role":"user","content":"%s","timestamp":1}}`, plain(marker)))
	}
	if err := w.s.Close(); err != nil {
		t.Fatal(err)
	}
	states := make(map[bool]int) // whether the new session was there
	for n, lived := 0, false; !lived; n++ {
		repo := filepath.Join(t.TempDir(), "repo")
		if err := os.CopyFS(repo, os.DirFS(w.repo.Dir())); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(repo, filepath.Base(w.ref.Path))
		lived = killedAt(t, path, n)
		states[judge(t, d, path, n)]++
		finish(t, d, repo, path, n)
	}
	if states[false] == 0 || states[true] < 2 {
		t.Errorf("not killed before and after the swap: %v", states)
	}
}

// killedAt runs a rewrite that is killed at a step, and reports whether it lived.
func killedAt(t *testing.T, path string, n int) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0], path)
	cmd.Env = append(os.Environ(), childSteps+"="+strconv.Itoa(n))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return strings.Contains(string(out), "rewritten")
	}
	if cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("step %d: %v\n%s", n, err, out)
	}
	return false
}

// judge wants a sound session, old or new, and reports which.
func judge(t *testing.T, d store.Driver, path string, n int) bool {
	t.Helper()
	r, err := d.View(t.Context(), path)
	if err != nil {
		t.Fatalf("step %d: %v", n, err)
	}
	defer r.Close()
	for p := range store.Verify(t.Context(), r, engine.Check) {
		if p.Severity == store.SeverityError {
			t.Errorf("step %d: %+v", n, p)
		}
	}
	var text strings.Builder
	for _, rec := range records(t, r) {
		if rec.Entry != nil {
			text.Write(rec.Entry.Payload)
		}
	}
	old, next := strings.Count(text.String(), plain(marker)), strings.Count(text.String(), gone)
	if old+next != 20 || old*next != 0 || (next > 0) != (r.Header().Generation == 2) {
		t.Errorf("step %d: %d old and %d new texts in generation %d", n, old, next, r.Header().Generation)
	}
	return next > 0
}

func finish(t *testing.T, d store.Driver, repo, path string, n int) {
	t.Helper()
	b, err := d.Open(t.Context(), path, store.OpenOptions{})
	if err != nil {
		t.Fatalf("step %d: %v", n, err)
	}
	s := store.NewSession(b, store.SessionOptions{})
	if err := redact(t.Context(), s); err != nil {
		t.Errorf("step %d: run again: %v", n, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if found := occurrences(t, repo); found > 0 {
		t.Errorf("step %d: the text is found %d times after the next run", n, found)
	}
	left, err := filepath.Glob(filepath.Join(repo, ".*tmp-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("step %d: left over: %v, %v", n, left, err)
	}
}
