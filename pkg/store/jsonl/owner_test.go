package jsonl_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
)

// These make the test binary a process of its own that opens a session.
const (
	childEnv  = "JSONL_TEST_CHILD"
	childPath = "JSONL_TEST_PATH"
)

var ticks = store.NewList[int]("app", "ticks")

// child opens the session, says so, and either makes one commit, or holds it until
// its input closes and perhaps commits then.
func child(mode, path string) int {
	switch mode {
	case "peak":
		return reportPeak(path)
	case "compact":
		return compactUntilKilled(path)
	}
	o := store.OpenOptions{Wait: time.Minute, Owner: store.OwnerInfo{Command: "child", Socket: "/run/s"}}
	ctx := context.Background()
	b, err := jsonl.Driver{}.Open(ctx, path, o)
	if err != nil {
		fmt.Println("open:", err)
		return 1
	}
	lease, err := jsonl.Driver{}.Lease(ctx, path)
	if err != nil || lease == nil {
		fmt.Println("lease:", lease, err)
		return 1
	}
	if mode == "commit" {
		if _, err := b.Commit(ctx, store.Tx{ticks.Append(int(lease.Fence))}); err != nil {
			fmt.Println("commit:", err)
			return 1
		}
	}
	fmt.Println("fence", lease.Fence)
	if mode == "hold" || mode == "wake" {
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	if mode == "wake" {
		if _, err := b.Commit(ctx, store.Tx{ticks.Append(1)}); err != nil {
			fmt.Println("commit:", err)
			return 1
		}
		fmt.Println("committed")
	}
	if err := b.Close(); err != nil {
		fmt.Println("close:", err)
		return 1
	}
	return 0
}

type process struct {
	*exec.Cmd
	in  io.Closer
	out *bufio.Reader
}

func start(t testing.TB, mode, path string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+mode, childPath+"="+path)
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
	p := &process{cmd, in, bufio.NewReader(out)}
	t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })
	return p
}

// fence waits until the process has the session.
func (p *process) fence(t testing.TB) int {
	t.Helper()
	line, err := p.out.ReadString('\n')
	var n int
	if _, scanErr := fmt.Sscanf(line, "fence %d", &n); scanErr != nil {
		t.Fatalf("child said %q: %v", line, err)
	}
	return n
}

func (p *process) kill(t testing.TB) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait()
}

func TestB13SecondOwnerIsToldWhoOwns(t *testing.T) {
	path := fresh(t)
	before := time.Now().UnixMilli()
	p := start(t, "hold", path)
	p.fence(t)
	_, err := jsonl.Driver{}.Open(t.Context(), path, options())
	var held *store.Held
	if !errors.As(err, &held) {
		t.Fatalf("got %v, want *Held", err)
	}
	l := held.Lease
	if l.OwnerID == "" || l.Since < before || l.Since > time.Now().UnixMilli() {
		t.Errorf("lease %+v", l)
	}
	host, _ := os.Hostname()
	l.OwnerID, l.Since = "", 0
	same(t, "lease", l, store.Lease{Fence: 1, Host: host, PID: p.Process.Pid, Live: true, Command: "child", Socket: "/run/s"})
	if err := (jsonl.Driver{}).Delete(t.Context(), path, options()); !errors.As(err, &held) {
		t.Errorf("delete: %v", err)
	}
}

// A session that somebody owns is not replaced by a build either (B14).
func TestB14BuildReplacesNoOwnedSession(t *testing.T) {
	path := fresh(t)
	b := open(t, path)
	commit(t, b, ticks.Append(1))
	content := read(t, path)
	h := store.Header{ID: "s", StorageVersion: store.StorageVersion, CreatedAt: now}
	replace := func() error {
		return jsonl.Driver{}.Build(t.Context(), path, store.NewSnapshot(h, nil), store.BuildOptions{Replace: true})
	}
	var held *store.Held
	if err := replace(); !errors.As(err, &held) || held.Lease.PID != os.Getpid() {
		t.Errorf("build: %v, want *Held", err)
	}
	same(t, "file", read(t, path), content)
	same(t, "left over", temps(t, path), []string(nil))
	commit(t, b, ticks.Append(2))
	closeStore(t, b)
	if err := replace(); err != nil {
		t.Errorf("build over a closed session: %v", err)
	}
}

// The lock dies with its process: the next owner waits for nothing (bug B15).
func TestB15KilledOwner(t *testing.T) {
	path := fresh(t)
	p := start(t, "hold", path)
	same(t, "first fence", p.fence(t), 1)
	p.kill(t)
	if l, err := (jsonl.Driver{}).Lease(t.Context(), path); l != nil || err != nil {
		t.Errorf("lease of a dead owner: %+v, %v", l, err)
	}
	commit(t, open(t, path), ticks.Append(1))
	l, err := jsonl.Driver{}.Lease(t.Context(), path)
	if err != nil || l == nil {
		t.Fatalf("lease: %v, %v", l, err)
	}
	same(t, "next fence", l.Fence, int64(2))
	same(t, "owner", l.PID, os.Getpid())
}

// An owner that is stopped blocks writers, by name, for as long as it lives,
// whatever its clock or theirs says; readers go on, and so does it (D16, B12).
func TestFrozenOwner(t *testing.T) {
	path := fresh(t)
	p := start(t, "wake", path)
	p.fence(t)
	if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, hours := range []int64{-1, 0, 1} {
		o := store.OpenOptions{Now: func() int64 { return time.Now().UnixMilli() + hours*3_600_000 }, LeaseTTL: time.Millisecond}
		for call, err := range map[string]error{
			"open":   func() error { _, err := jsonl.Driver{}.Open(t.Context(), path, o); return err }(),
			"delete": jsonl.Driver{}.Delete(t.Context(), path, o),
		} {
			var held *store.Held
			if !errors.As(err, &held) || held.Lease.PID != p.Process.Pid || !held.Lease.Live {
				t.Errorf("%s, %d h off: got %v, want *Held by %d", call, hours, err, p.Process.Pid)
			}
		}
	}
	same(t, "a reader sees", len(records(t, view(t, path))), 0)
	if err := p.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	p.in.Close()
	line, _ := p.out.ReadString('\n')
	same(t, "the owner says", line, "committed\n")
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	same(t, "the next owner sees", len(records(t, open(t, path))), 1)
}

func TestOpenWaitsForAnOwnerThatCloses(t *testing.T) {
	path := fresh(t)
	p := start(t, "hold", path)
	p.fence(t)
	opened := make(chan error, 1)
	go func() {
		b, err := jsonl.Driver{}.Open(t.Context(), path, store.OpenOptions{Wait: time.Minute})
		if err == nil {
			err = b.Close()
		}
		opened <- err
	}()
	p.in.Close()
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

func TestOpenStopsWaitingWithItsContext(t *testing.T) {
	path := fresh(t)
	b := open(t, path)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := (jsonl.Driver{}).Open(ctx, path, store.OpenOptions{Wait: time.Hour}); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	commit(t, b, ticks.Append(1))
}

// What the lock file says never decides, and never stands in the way (bugs B15,
// B16).
func TestB15LockFileContents(t *testing.T) {
	contents := map[string]struct {
		text  string
		fence int64 // of the next owner
	}{
		"empty":                  {"", 1},
		"garbage":                {"\x00\xffgarbage", 1},
		"another shape":          {`["pid",1]`, 1},
		"wrong types":            {`{"fence":"7","pid":{},"ownerId":3}`, 1},
		"half":                   {`{"ownerId":"x","fence":7`, 1},
		"pid 1":                  {`{"ownerId":"x","fence":7,"pid":1}`, 8},
		"another host":           {`{"ownerId":"x","fence":7,"pid":1,"host":"elsewhere","bootId":"b","pidNs":"n"}`, 8},
		"the rest of an old one": {`{"fence":7,"pid":1}` + "\n" + `,"socket":"/run/old"}`, 8},
	}
	for name, c := range contents {
		t.Run(name, func(t *testing.T) {
			path := fresh(t)
			write(t, path+".lock", []byte(c.text))
			if l, err := (jsonl.Driver{}).Lease(t.Context(), path); l != nil || err != nil {
				t.Errorf("lease: %+v, %v", l, err)
			}
			open(t, path)
			l, err := jsonl.Driver{}.Lease(t.Context(), path)
			if err != nil || l == nil {
				t.Fatalf("lease: %v, %v", l, err)
			}
			same(t, "fence", l.Fence, c.fence)
			same(t, "pid", l.PID, os.Getpid())
		})
	}
}

// A held lock whose file tells nothing is a held lock all the same.
func TestHeldWithoutInformation(t *testing.T) {
	path := fresh(t)
	open(t, path)
	write(t, path+".lock", nil)
	var held *store.Held
	if _, err := (jsonl.Driver{}).Open(t.Context(), path, options()); !errors.As(err, &held) || !held.Lease.Live {
		t.Errorf("got %v", err)
	}
}

// Of many that start together each gets its turn, none is lost, and the fences
// rise (bug B16).
func TestB16ManyContenders(t *testing.T) {
	path := fresh(t)
	self := fsx.Self()
	write(t, path+".lock", fmt.Appendf(nil, `{"ownerId":"stale","fence":41,"pid":%d,"pidStart":1,"bootId":%q,"pidNs":%q}`, self.PID, self.BootID, self.PIDNS))
	var want []int
	var contenders []*process
	for i := range 8 {
		contenders = append(contenders, start(t, "commit", path))
		want = append(want, 42+i)
	}
	var fences []int
	for _, p := range contenders {
		fences = append(fences, p.fence(t))
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	slices.Sort(fences)
	same(t, "fences", fences, want)
	elements, err := store.ReadList(t.Context(), view(t, path), ticks, store.ListQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, e := range elements {
		got = append(got, e.Value)
	}
	same(t, "commits in order of the fences", got, want)
	same(t, "lines", soundLines(t, path), 9)
}

// Asking who owns a session must not make its next owner believe that somebody
// does.
func TestProbesDoNotLock(t *testing.T) {
	path := fresh(t)
	closeStore(t, open(t, path))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := (jsonl.Driver{}).Lease(context.Background(), path); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 50 {
		closeStore(t, open(t, path))
	}
	close(stop)
	wg.Wait()
}

func TestLinkedSessionHasOneLock(t *testing.T) {
	path := fresh(t)
	link := filepath.Join(t.TempDir(), "link.jsonl")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	b := open(t, link)
	var held *store.Held
	if _, err := (jsonl.Driver{}).Open(t.Context(), path, options()); !errors.As(err, &held) {
		t.Errorf("got %v, want *Held", err)
	}
	closeStore(t, b)
	if _, err := os.Stat(link + ".lock"); !os.IsNotExist(err) {
		t.Errorf("a lock beside the link: %v", err)
	}
	if err := (jsonl.Driver{}).Delete(t.Context(), link, options()); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Dir(path), filepath.Dir(link)} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left in %s: %v, %v", dir, left, err)
		}
	}
}

func TestLockFileStaysUntilDelete(t *testing.T) {
	path := fresh(t)
	closeStore(t, open(t, path))
	if _, err := os.Stat(path + ".lock"); err != nil {
		t.Errorf("after close: %v", err)
	}
	if err := (jsonl.Driver{}).Delete(t.Context(), path, options()); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
		t.Errorf("after delete: %v, %v", left, err)
	}
}

// What cannot be opened gets no lock file beside it.
func TestFailedOpenLeavesNoLock(t *testing.T) {
	for name, content := range map[string]string{
		"legacy":  `{"type":"session","version":3,"id":"x","timestamp":"2025-01-01T00:00:00Z","cwd":"/"}` + "\n",
		"newer":   strings.Replace(headerLine, `"storageVersion":1`, `"storageVersion":3`, 1),
		"no JSON": "hello\n",
		"empty":   "",
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t, content)
			if _, err := (jsonl.Driver{}).Open(t.Context(), path, options()); err == nil {
				t.Error("opened")
			}
			if _, err := os.Stat(path + ".lock"); !os.IsNotExist(err) {
				t.Errorf("lock: %v", err)
			}
			same(t, "content", string(read(t, path)), content)
		})
	}
}
