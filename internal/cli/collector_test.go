package cli

import "testing"

func TestCollectorPercent(t *testing.T) {
	for _, tt := range []struct {
		liveMB uint64
		want   int
	}{{0, 100}, {16, 100}, {32, 50}, {64, 25}, {100, collectorShare}, {100_000, collectorShare}} {
		if got := collectorPercent(tt.liveMB << 20); got != tt.want {
			t.Errorf("%d MB: %d percent, want %d", tt.liveMB, got, tt.want)
		}
	}
}
