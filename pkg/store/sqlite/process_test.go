package sqlite

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/store"
)

// childHold opens a session, appends a mark per line it reads and says so.
func childHold(args []string) error {
	b, err := openOwner(ctx, args[0], store.OpenOptions{})
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		if _, err := b.Commit(ctx, store.Tx{marks.Append(strconv.Itoa(i))}); err != nil {
			return err
		}
		fmt.Println("committed", i)
		if _, err := fmt.Scanln(); err != nil {
			return err
		}
	}
}

// TestB15KilledOwner: what a process committed survives kill -9, and the next owner
// takes over at once (B15).
func TestB15KilledOwner(t *testing.T) {
	path := newSession(t)
	c := startChild(t, "hold", path)
	for i := range 5 {
		if got, want := c.line(t), fmt.Sprint("committed ", i); got != want {
			t.Fatalf("child says %q, want %q", got, want)
		}
		if i == 2 {
			_, err := openOwner(ctx, path, store.OpenOptions{})
			var held *store.Held
			if !errors.As(err, &held) || held.Lease.PID != c.cmd.Process.Pid {
				t.Fatalf("open beside the child: %v, want held by %d", err, c.cmd.Process.Pid)
			}
		}
		if i < 4 {
			fmt.Fprintln(c.in)
		}
	}
	c.kill(t)
	r, err := openReader(path) // before anyone recovers
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"0", "1", "2", "3", "4"}
	if got := readMarks(t, r); !slices.Equal(got, want) {
		t.Errorf("a reader sees %v, want %v", got, want)
	}
	mustClose(t, r)
	b := open(t, path, store.OpenOptions{})
	if got := readMarks(t, b); !slices.Equal(got, want) {
		t.Errorf("the next owner sees %v, want %v", got, want)
	}
	if b.claim.fence != 2 {
		t.Errorf("fence %d, want 2", b.claim.fence)
	}
}

// childFrozen opens a session with a short lease, commits when it is told to and
// says how that ends.
func childFrozen(args []string) error {
	b, err := openOwner(ctx, args[0], store.OpenOptions{LeaseTTL: 50 * time.Millisecond})
	if err != nil {
		return err
	}
	fmt.Println("owns", b.claim.fence)
	for {
		if _, err := fmt.Scanln(); err != nil {
			return err
		}
		_, err := b.Commit(ctx, store.Tx{marks.Append("child")})
		var lost *store.Lost
		switch {
		case err == nil:
			fmt.Println("committed")
		case errors.As(err, &lost):
			fmt.Println("lost:", lost.Reason)
		default:
			return err
		}
	}
}

// TestFrozenOwner: an owner that is stopped loses the session once its lease has
// run out; it wakes up fenced, and writes nothing more (spec §1.7).
func TestFrozenOwner(t *testing.T) {
	path := newSession(t)
	c := startChild(t, "frozen", path)
	says := func(want string) {
		t.Helper()
		if got := c.line(t); got != want {
			t.Fatalf("child says %q, want %q", got, want)
		}
	}
	says("owns 1")
	fmt.Fprintln(c.in)
	says("committed")
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	b := open(t, path, store.OpenOptions{LeaseTTL: 50 * time.Millisecond, Wait: time.Minute})
	if b.claim.fence != 2 {
		t.Errorf("fence %d, want 2", b.claim.fence)
	}
	commit(t, b, marks.Append("successor"))
	if err := c.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		fmt.Fprintln(c.in)
		says("lost: fenced")
	}
	commit(t, b, marks.Append("successor"))
	if got := readMarks(t, b); !slices.Equal(got, []string{"child", "successor", "successor"}) {
		t.Errorf("marks %v", got)
	}
	c.kill(t)
	if err := b.Check(ctx); err != nil {
		t.Errorf("the successor: %v", err)
	}
	mustClose(t, b)
	if found := problemsOf(t, path); len(found) > 0 {
		t.Errorf("problems: %v", found)
	}
}

// childAppend opens a session some times and marks each ownership by its fence.
func childAppend(args []string) error {
	rounds, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	for range rounds {
		b, err := openOwner(ctx, args[0], store.OpenOptions{Wait: time.Minute})
		if err != nil {
			return err
		}
		for range 3 {
			if _, err := b.Commit(ctx, store.Tx{marks.Append(strconv.FormatInt(b.claim.fence, 10))}); err != nil {
				return err
			}
		}
		if err := b.Close(); err != nil {
			return err
		}
		fmt.Println("done")
	}
	return nil
}

// TestB16RacingOwners: of many processes exactly one owns the session at a time,
// each with a higher fence (B16).
func TestB16RacingOwners(t *testing.T) {
	const processes, rounds = 8, 3
	path := newSession(t)
	setClaim(t, path, claim{owner: "dead", fence: 10, ttl: time.Hour, process: deadProcess(t)})
	var all []*child
	for range processes {
		all = append(all, startChild(t, "append", path, strconv.Itoa(rounds)))
	}
	for _, c := range all {
		for range rounds {
			c.line(t)
		}
	}
	r, err := openReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var want []string
	for fence := range processes * rounds {
		for range 3 {
			want = append(want, strconv.Itoa(11+fence))
		}
	}
	if diff := cmp.Diff(want, readMarks(t, r)); diff != "" {
		t.Errorf("fences in the order of their commits (-want +got):\n%s", diff)
	}
}

// childRefused opens a session that is owned and says how that ends.
func childRefused(args []string) error {
	_, err := openOwner(ctx, args[0], store.OpenOptions{})
	var held *store.Held
	fmt.Println("held:", errors.As(err, &held))
	return nil
}

// TestLocksSurviveOtherReaders: whoever opens and closes the file in the owner's
// process does not take its locks away. Without them the next contender would
// delete the WAL that the owner writes.
func TestLocksSurviveOtherReaders(t *testing.T) {
	path := newSession(t)
	b := open(t, path, store.OpenOptions{})
	commit(t, b, marks.Append("1"))
	if _, err := os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	if got := startChild(t, "refused", path).line(t); got != "held: true" {
		t.Fatalf("a contender was not refused: %s", got)
	}
	commit(t, b, marks.Append("2"))
	mustClose(t, b)
	r, err := openReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := readMarks(t, r); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("marks %v, want 1 and 2", got)
	}
}
