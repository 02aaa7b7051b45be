package sqlite

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/store"
)

// setClaim writes a lease row as some owner would have left it.
func setClaim(t testing.TB, path string, c claim) {
	t.Helper()
	h, err := openHandle(path, dsnOwner)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	old, err := h.claim()
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := h.succeed(old, c); err != nil || !ok {
		t.Fatalf("set claim: %v, %v", ok, err)
	}
}

// deadProcess is the identity of a process that has ended and been collected.
func deadProcess(t testing.TB) fsx.Process {
	t.Helper()
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Skip("no program to run:", err)
	}
	p := fsx.Self()
	p.PID = cmd.Process.Pid
	return p
}

func changed(p fsx.Process, change func(*fsx.Process)) fsx.Process {
	change(&p)
	return p
}

// TestTakeover finds a claim that its owner did not give up.
func TestTakeover(t *testing.T) {
	const atOnce, whenHeld, afterTTL = 0, patience, 30 * time.Second
	self := fsx.Self()
	if self.BootID == "" {
		t.Skip("the system does not identify processes")
	}
	cases := map[string]struct {
		process fsx.Process
		ttl     time.Duration // of the claim
		wait    time.Duration
		want    time.Duration // how long it takes
		held    bool
	}{
		"a dead process":                   {process: deadProcess(t), ttl: afterTTL, want: atOnce},
		"another start time":               {process: changed(self, func(p *fsx.Process) { p.Start++ }), ttl: afterTTL, want: atOnce},
		"alive":                            {process: self, ttl: afterTTL, want: whenHeld, held: true},
		"alive, a wait below its ttl":      {process: self, ttl: afterTTL, wait: 29 * time.Second, want: 29 * time.Second, held: true},
		"alive but frozen":                 {process: self, ttl: afterTTL, wait: time.Minute, want: afterTTL},
		"another boot":                     {process: changed(self, func(p *fsx.Process) { p.BootID = "b" }), ttl: afterTTL, want: whenHeld, held: true},
		"another boot, long wait":          {process: changed(self, func(p *fsx.Process) { p.BootID = "b" }), ttl: afterTTL, wait: time.Minute, want: afterTTL},
		"another pid namespace, long wait": {process: changed(self, func(p *fsx.Process) { p.PIDNS = "n"; p.PID = 1 }), ttl: afterTTL, wait: time.Minute, want: afterTTL},
		"a longer life than ours":          {process: fsx.Process{Host: "far"}, ttl: time.Minute, wait: 2 * time.Minute, want: time.Minute},
		"an absurdly long life":            {process: fsx.Process{Host: "far"}, ttl: 24 * 365 * time.Hour, wait: time.Hour, want: maxTTL},
		"a shorter life than ours":         {process: fsx.Process{Host: "far"}, ttl: time.Second, wait: time.Minute, want: afterTTL},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := newSession(t)
			// The time of its clock is of no account: it expired long ago.
			old := claim{owner: "other", fence: 41, expires: 5, ttl: c.ttl, process: c.process, acquired: 3, command: "prompt", socket: "/run/s"}
			setClaim(t, path, old)
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				b, err := openOwner(t.Context(), path, store.OpenOptions{Wait: c.wait})
				took := time.Since(began)
				if took < c.want || took > c.want+2*pollWait {
					t.Errorf("took %v, want %v", took, c.want)
				}
				if c.held {
					var held *store.Held
					if !errors.As(err, &held) {
						t.Fatalf("open: got %v, want *Held", err)
					}
					expires := int64(5)
					want := &store.Held{Path: path, Lease: store.Lease{
						OwnerID: "other", Fence: 41, ExpiresAt: &expires, Host: c.process.Host, PID: c.process.PID, Since: 3,
						Live: c.process.BootID == self.BootID, Command: "prompt", Socket: "/run/s",
					}}
					if diff := cmp.Diff(want, held); diff != "" {
						t.Errorf("held (-want +got):\n%s", diff)
					}
					return
				}
				if err != nil {
					t.Fatalf("open: %v", err)
				}
				defer b.Close()
				if b.claim.fence != 42 {
					t.Errorf("fence %d, want 42", b.claim.fence)
				}
			})
		})
	}
}

// TestB12ClockJumps: a clock that is an hour off, on either side and in either
// direction, neither takes a lease away from who renews it nor keeps one longer
// than its life (spec §1.7).
func TestB12ClockJumps(t *testing.T) {
	const ttl = 30 * time.Second
	for _, hours := range []int64{-1, 0, 1} {
		t.Run(strconv.FormatInt(hours, 10)+" h", func(t *testing.T) {
			jumped := func() int64 { return time.Now().UnixMilli() + hours*time.Hour.Milliseconds() }
			far := func() fsx.Process { return fsx.Process{Host: "far"} } // of which nothing can be known
			t.Run("of a contender, beside an owner who renews", func(t *testing.T) {
				path := newSession(t)
				synctest.Test(t, func(t *testing.T) {
					b, err := openOwner(t.Context(), path, store.OpenOptions{LeaseTTL: ttl})
					if err != nil {
						t.Fatal(err)
					}
					defer b.Close()
					var held *store.Held
					if _, err := openOwner(t.Context(), path, store.OpenOptions{Now: jumped, Wait: 3 * ttl}); !errors.As(err, &held) {
						t.Errorf("open: got %v, want *Held", err)
					}
					commit(t, b, marks.Append("mine"))
				})
			})
			t.Run("of the owner while it renews", func(t *testing.T) {
				path := newSession(t)
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					renewsThrough(t, path, func() int64 {
						if time.Since(began) < ttl {
							return time.Now().UnixMilli()
						}
						return jumped()
					})
				})
			})
			t.Run("of an owner who is gone", func(t *testing.T) {
				path := newSession(t)
				setClaim(t, path, claim{owner: "other", fence: 3, expires: jumped() + ttl.Milliseconds(), ttl: ttl, process: far()})
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					b, err := openOwner(t.Context(), path, store.OpenOptions{LeaseTTL: ttl, Wait: time.Hour})
					if err != nil {
						t.Fatal(err)
					}
					defer b.Close()
					if took := time.Since(began); took < ttl || took > ttl+2*pollWait || b.claim.fence != 4 {
						t.Errorf("took %v, fence %d", took, b.claim.fence)
					}
				})
			})
			t.Run("beside a dead process", func(t *testing.T) {
				path := newSession(t)
				setClaim(t, path, claim{owner: "other", fence: 3, expires: jumped() + ttl.Milliseconds(), ttl: ttl, process: deadProcess(t)})
				open(t, path, store.OpenOptions{Now: jumped})
			})
		})
	}
}

// renewsThrough wants an owner with a strange clock to keep its session.
func renewsThrough(t *testing.T, path string, clock func() int64) {
	b, err := openOwner(t.Context(), path, store.OpenOptions{LeaseTTL: 30 * time.Second, Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var held *store.Held
	if _, err := openOwner(t.Context(), path, store.OpenOptions{Wait: 2 * time.Minute}); !errors.As(err, &held) {
		t.Errorf("open: got %v, want *Held", err)
	}
	commit(t, b, marks.Append("mine"))
}

// TestClockStandsStill: a renewal shows even so.
func TestClockStandsStill(t *testing.T) {
	path := newSession(t)
	synctest.Test(t, func(t *testing.T) { renewsThrough(t, path, func() int64 { return 1_700_000_000_000 }) })
}

func TestTakeoverOfAZombie(t *testing.T) {
	cmd := exec.Command("true")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skip("no program to run:", err)
	}
	defer cmd.Wait()
	_, _ = out.Read(make([]byte, 1)) // ends with the process, which nobody has collected
	path := newSession(t)
	p := fsx.Self()
	p.PID, p.Start = cmd.Process.Pid, 0
	setClaim(t, path, claim{owner: "other", fence: 1, ttl: time.Minute, process: p})
	open(t, path, store.OpenOptions{Wait: 10 * time.Second})
}

// TestB15GarbageLease finds a row that no owner wrote: it is waited out like a
// claim that nothing is known of (B15).
func TestB15GarbageLease(t *testing.T) {
	path := newSession(t)
	foreign(t, path, `UPDATE writer_lease SET owner_id = x'00ff', fence = 'abc', expires_at_ms = 'soon', ttl_ms = 'long',
		host = 7, boot_id = x'00', pid_ns = 1.5, pid = 'one', pid_start = 'never', acquired_at = 'yesterday', command = 1, socket = 2`)
	synctest.Test(t, func(t *testing.T) {
		var held *store.Held
		if _, err := openOwner(t.Context(), path, store.OpenOptions{}); !errors.As(err, &held) {
			t.Fatalf("open: got %v, want *Held", err)
		}
		b, err := openOwner(t.Context(), path, store.OpenOptions{Wait: defaultTTL})
		if err != nil {
			t.Fatalf("open after the wait: %v", err)
		}
		defer b.Close()
		commit(t, b, marks.Append("mine"))
	})
}

func TestMissingLeaseRow(t *testing.T) {
	path := newSession(t)
	foreign(t, path, `DELETE FROM writer_lease`)
	var c *store.Corrupt
	if _, err := openOwner(ctx, path, store.OpenOptions{}); !errors.As(err, &c) {
		t.Fatalf("open: got %v, want *Corrupt", err)
	}
}

// TestLeaseOfALiveOwner looks at an open session from outside and at the row
// that Close leaves.
func TestLeaseOfALiveOwner(t *testing.T) {
	path := newSession(t)
	if l, err := (Driver{}).Lease(ctx, path); l != nil || err != nil {
		t.Fatalf("a new session: lease %v, error %v", l, err)
	}
	now := int64(1_700_000_000_500)
	b := open(t, path, store.OpenOptions{
		LeaseTTL: 20 * time.Second, Now: func() int64 { return now },
		Owner: store.OwnerInfo{Command: "drive", Socket: "/run/drover/x"},
	})
	self := fsx.Self()
	got, err := (Driver{}).Lease(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	expires := now + 20_000
	want := &store.Lease{
		OwnerID: b.claim.owner, Fence: 1, ExpiresAt: &expires, Host: self.Host, PID: self.PID, Since: now, Live: true,
		Command: "drive", Socket: "/run/drover/x",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lease (-want +got):\n%s", diff)
	}
	mustClose(t, b)
	if l, err := (Driver{}).Lease(ctx, path); l != nil || err != nil {
		t.Fatalf("a closed session: lease %v, error %v", l, err)
	}
	named := store.OpenOptions{Socket: func(path string, fence int64) string { return fmt.Sprintf("%s:%d", filepath.Base(path), fence) }}
	if b := open(t, path, named); b.claim.fence != 2 {
		t.Errorf("fence of the next owner is %d, want 2", b.claim.fence)
	}
	if got, err = (Driver{}).Lease(ctx, path); err != nil || got.Socket != filepath.Base(path)+":2" {
		t.Errorf("the next owner's lease is %v, error %v, want it to name its socket", got, err)
	}
}

// TestLeaseOfADeadOwner shows a claim that nobody gave up, but not as live.
func TestLeaseOfADeadOwner(t *testing.T) {
	path := newSession(t)
	setClaim(t, path, claim{owner: "dead", fence: 3, expires: store.SystemNow() + 60_000, process: deadProcess(t)})
	l, err := (Driver{}).Lease(ctx, path)
	if err != nil || l == nil || l.Live || l.OwnerID != "dead" {
		t.Fatalf("lease %+v, error %v, want dead's claim, not live", l, err)
	}
	setClaim(t, path, claim{owner: "far", fence: 4, expires: store.SystemNow() + 60_000, process: fsx.Process{Host: "far", PID: 1}})
	if l, err = (Driver{}).Lease(ctx, path); err != nil || l == nil || !l.Live {
		t.Fatalf("lease %+v, error %v, want far's claim, live until it expires", l, err)
	}
	setClaim(t, path, claim{owner: "far", fence: 5, expires: store.SystemNow() - 1, process: fsx.Process{Host: "far", PID: 1}})
	if l, err = (Driver{}).Lease(ctx, path); err != nil || l == nil || l.Live {
		t.Fatalf("lease %+v, error %v, want far's claim, expired", l, err)
	}
}

// TestRenewal keeps the lease of an idle owner, and of a busy one by its commits
// alone.
func TestRenewal(t *testing.T) {
	path := newSession(t)
	expiry := func() (at int64) {
		ask(t, path, `SELECT expires_at_ms FROM writer_lease`, &at)
		return at
	}
	synctest.Test(t, func(t *testing.T) {
		clock := func() int64 { return time.Now().UnixMilli() }
		b, err := openOwner(t.Context(), path, store.OpenOptions{LeaseTTL: 30 * time.Second, Now: clock})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		opened := clock()
		for second := 1; second <= 65; second++ {
			time.Sleep(time.Second)
			synctest.Wait()
			want := opened + 30_000 + int64(second/10)*10_000
			if got := expiry(); got != want {
				t.Fatalf("idle for %d s: expires at +%d ms, want +%d", second, got-opened, want-opened)
			}
		}
		// 11 s after the renewal at 60 s a commit does it.
		time.Sleep(4900 * time.Millisecond)
		before := expiry()
		commit(t, b, marks.Append("x"))
		if got := expiry(); got != before {
			t.Fatalf("a commit within a third of the ttl renewed the lease")
		}
	})
}

// TestRenewalByCommits: an owner whose idle renewal cannot run, because commits
// hold the connection, still keeps its lease.
func TestRenewalByCommits(t *testing.T) {
	path := newSession(t)
	b := open(t, path, store.OpenOptions{LeaseTTL: time.Hour}) // cut to maxTTL
	h, err := b.near.take(ctx)
	if err != nil {
		t.Fatal(err)
	}
	b.renewed = b.renewed.Add(-2 * time.Minute) // as if they had passed
	b.near.give(h)
	var before, after int64
	ask(t, path, `SELECT expires_at_ms FROM writer_lease`, &before)
	b.now = func() int64 { return store.SystemNow() + 2*60*1000 }
	commit(t, b, marks.Append("x"))
	ask(t, path, `SELECT expires_at_ms FROM writer_lease`, &after)
	if after < before+110*1000 {
		t.Errorf("expiry went from %d to %d", before, after)
	}
}

// TestB12FencedOwner: an owner that was replaced while it was frozen writes nothing
// more and leaves its successor's claim alone (B12, D19).
func TestB12FencedOwner(t *testing.T) {
	isLost := func(t *testing.T, what string, err error) {
		t.Helper()
		var lost *store.Lost
		if !errors.As(err, &lost) || lost.Reason != "fenced" {
			t.Errorf("%s: got %v, want *Lost, fenced", what, err)
		}
	}
	cases := map[string]func(t *testing.T, b *backend){
		"finds out by a commit": func(t *testing.T, b *backend) {
			_, err := b.Commit(ctx, store.Tx{marks.Append("late")})
			isLost(t, "commit", err)
		},
		"finds out by a check": func(t *testing.T, b *backend) {
			isLost(t, "check", b.Check(ctx))
		},
		"finds out by its renewal": func(t *testing.T, b *backend) {
			h, err := b.near.take(ctx)
			if err != nil {
				t.Fatal(err)
			}
			b.renewed = b.renewed.Add(-time.Hour)
			b.tend(h)
			b.near.give(h)
		},
	}
	for name, find := range cases {
		t.Run(name, func(t *testing.T) {
			path := newSession(t)
			b := open(t, path, store.OpenOptions{})
			commit(t, b, marks.Append("first"))
			next := claim{owner: "next", fence: 2, ttl: time.Minute, process: fsx.Self()}
			setClaim(t, path, next)
			find(t, b)
			_, err := b.Commit(ctx, store.Tx{marks.Append("later")})
			isLost(t, "commit", err)
			if got := readMarks(t, b); !slices.Equal(got, []string{"first"}) {
				t.Errorf("marks %v, want only the first", got)
			}
			mustClose(t, b)
			if l, err := (Driver{}).Lease(ctx, path); err != nil || l == nil || l.OwnerID != "next" || l.Fence != 2 {
				t.Errorf("lease after the old owner's close: %+v, %v", l, err)
			}
		})
	}
}
