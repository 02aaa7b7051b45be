package cli

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// collectorRoom is by how much the heap may outgrow what lives in it before
	// the share decides.
	collectorRoom = 16 << 20
	// collectorShare is the least room, in percent of what lives.
	collectorShare = 20
)

// tightenCollector keeps the memory of a large heap near what lives in it. Left
// alone the collector lets any heap double, and the few copies of a long answer
// that have to exist would take twice their room (D41). A heap of up to
// collectorRoom is collected as always.
func tightenCollector() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	var after func(struct{})
	again := func() {
		// What nobody refers to is found by the next collection.
		runtime.AddCleanup(new([16]byte), after, struct{}{})
	}
	set := 100
	after = func(struct{}) {
		metrics.Read(live)
		if percent := collectorPercent(live[0].Value.Uint64()); percent != set {
			set = percent
			debug.SetGCPercent(percent)
		}
		again()
	}
	again()
}

// collectorPercent is the GOGC for a heap in which so many bytes live.
func collectorPercent(live uint64) int {
	if live <= collectorRoom {
		return 100
	}
	return max(int(collectorRoom*100/live), collectorShare)
}
