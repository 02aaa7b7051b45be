package cli

import "testing"

func TestCollectorPercent(t *testing.T) {
	for _, tt := range []struct {
		liveMB uint64
		want   int
	}{{0, collectorMost}, {3, collectorMost}, {8, 200}, {16, 100}, {32, 50}, {64, 25}, {100, collectorLeast}, {100_000, collectorLeast}} {
		if got := collectorPercent(tt.liveMB << 20); got != tt.want {
			t.Errorf("%d MB: %d percent, want %d", tt.liveMB, got, tt.want)
		}
	}
}
