package tool

import (
	"time"

	"github.com/drover-run/drover/pkg/message"
)

// How often a running command reports what it has printed (spec §3.8).
const (
	liveEvery       = 100 * time.Millisecond
	checkpointEvery = 2 * time.Second
)

// reportProgress passes the end of a growing output on until stop is closed:
// live whenever it changed, and as a checkpoint when it is not the last one and
// that is old enough.
func reportProgress(stop <-chan struct{}, o *Output, update func(partial message.ToolResult, checkpoint bool)) {
	ticks := time.NewTicker(liveEvery)
	defer ticks.Stop()
	var checkpointed string
	var at time.Time
	shown, unsaved := 0, false
	for {
		select {
		case <-stop:
			return
		case <-ticks.C:
		}
		version := o.changed()
		fresh := version != shown
		due := (fresh || unsaved) && time.Since(at) >= checkpointEvery
		if !fresh && !due {
			continue
		}
		shown, unsaved = version, true
		v := o.last()
		if due {
			unsaved = false
			if due = v.text != checkpointed; due {
				checkpointed, at = v.text, time.Now()
			}
		}
		if fresh || due {
			update(snapshot(v), due)
		}
	}
}

// snapshot is the bounded result of a command that still runs.
func snapshot(v view) message.ToolResult {
	d := object{}.boolean("truncated", v.cut)
	return message.ToolResult{Content: []message.Block{message.TextBlock(v.text)}, Details: d.raw()}
}
