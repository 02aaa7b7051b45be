package cli

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// collectorRoom is by how much the heap may outgrow what lives in it, in bytes,
	// before the shares decide.
	collectorRoom = 16 << 20
	// collectorLeast and collectorMost are the room that there is at least and at
	// most, in percent of what lives.
	collectorLeast, collectorMost = 20, 400
)

// tuneCollector gives the heap a room that does not depend on its size. Left alone
// the collector lets any heap double: it runs all the time in a small one, as of a
// command that goes through thousands of sessions, and of a large one keeps the
// memory from staying near what lives in it: the few copies of a long answer that
// have to exist would take twice their room (D41).
func tuneCollector() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	var after func(struct{})
	again := func() {
		// What nobody refers to is found by the next collection.
		runtime.AddCleanup(new([16]byte), after, struct{}{})
	}
	set := collectorMost
	debug.SetGCPercent(set)
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
	return int(min(max(collectorRoom*100/max(live, 1), collectorLeast), collectorMost))
}
