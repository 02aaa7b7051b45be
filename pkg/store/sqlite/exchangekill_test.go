package sqlite

import (
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/drover-run/drover/pkg/store"
)

// childExchange takes the marks out of a session with a file system that ends it
// before the n-th call.
func childExchange(args []string) error {
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
	err = b.(store.Exchanger).Exchange(ctx, store.Exchange{Next: func(old *store.Snapshot) (*store.Snapshot, error) {
		next := *old
		next.Records = func(yield func(store.Record, error) bool) {
			for r, err := range old.Records {
				if r.Address != marks.Address() && !yield(r, err) {
					return
				}
			}
		}
		return &next, nil
	}})
	if err != nil {
		return err
	}
	fmt.Println("exchanged")
	return b.Close()
}

// TestB53KilledExchange: whichever step kill -9 comes before, the session has the
// old content or the new, and the next owner has it at once.
func TestB53KilledExchange(t *testing.T) {
	seen := map[int]bool{}
	for n := 0; ; n++ {
		path := wasted(t)
		c := startChild(t, "exchange", path, strconv.Itoa(n))
		line, _ := c.out.ReadString('\n')
		_ = c.cmd.Wait()
		if c.err.Len() > 0 {
			t.Fatalf("child %d: %s", n, c.err)
		}
		r, err := openReader(path)
		if err != nil {
			t.Fatalf("killed before call %d: %v", n, err)
		}
		got := readMarks(t, r)
		seen[len(got)] = true
		if len(got) != 0 && !slices.Equal(got, []string{"1", "2"}) {
			t.Errorf("killed before call %d: a reader sees %v", n, got)
		}
		mustClose(t, r)
		goesOn(t, open(t, path, store.OpenOptions{}), n, got)
		if line == "exchanged\n" {
			break
		}
	}
	if !seen[0] || !seen[2] {
		t.Errorf("not both contents were seen: %v", seen)
	}
}
