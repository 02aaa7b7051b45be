package memory

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all table[int]
		var kept []table[int] // snapshots
		n := rapid.IntRange(0, 300).Draw(t, "items")
		for i := range n {
			if rapid.IntRange(0, 20).Draw(t, "snapshot") == 0 {
				kept = append(kept, all)
			}
			all.add(10 * i)
		}
		kept = append(kept, all, all.clone())
		for _, s := range kept {
			for i := range s.n {
				if *s.at(i) != 10*i {
					t.Fatalf("item %d of %d is %d", i, s.n, *s.at(i))
				}
			}
			probe := rapid.IntRange(-5, 10*n+5).Draw(t, "probe")
			got := s.search(func(x *int) bool { return *x < probe })
			if want := min(s.n, max(0, (probe+9)/10)); got != want {
				t.Fatalf("%d of %d items are below %d, want %d", got, s.n, probe, want)
			}
		}
		copied := all.clone()
		copied.add(-1)
		all.add(-2)
		if *copied.at(n) != -1 || *all.at(n) != -2 {
			t.Fatal("a clone shares its blocks")
		}
	})
}

func TestSeqBounds(t *testing.T) {
	var items table[element]
	for _, seq := range []int64{2, 4, 6} {
		items.add(element{seq: seq})
	}
	tests := []struct{ from, to, lo, hi int64 }{
		{0, 0, 0, 3}, {2, 6, 0, 3}, {3, 5, 1, 2}, {4, 4, 1, 2}, {3, 3, 1, 1}, {7, 0, 3, 3}, {0, 1, 0, 0}, {6, 2, 1, 1},
		{0, math.MaxInt64, 0, 3}, {math.MaxInt64, 0, 3, 3}, {math.MinInt64, 2, 0, 1},
	}
	for _, tt := range tests {
		if lo, hi := seqRange(items, tt.from, tt.to, elementSeq); int64(lo) != tt.lo || int64(hi) != tt.hi {
			t.Errorf("from %d to %d: [%d, %d), want [%d, %d)", tt.from, tt.to, lo, hi, tt.lo, tt.hi)
		}
	}
}
