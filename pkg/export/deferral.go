package export

import (
	"fmt"

	"github.com/drover-run/drover/pkg/message"
)

// Deferral is a run of answers that say only that the answer of one job is to come:
// the one that deferred it, and one for each poll.
type Deferral struct {
	First  message.Message
	At     int64 // when that was, Unix ms
	Polls  int
	LastAt int64             // when the last one was, Unix ms
	Failed message.ErrorInfo // why the last poll was not answered
}

// Text says it in a line; when words a time, such as "at noon".
func (d Deferral) Text(when func(ms int64) string) string {
	switch d.Polls {
	case 0:
		return "deferred"
	case 1:
		return fmt.Sprintf("deferred (1 poll, %s)", when(d.LastAt))
	}
	return fmt.Sprintf("deferred (%d polls, last %s)", d.Polls, when(d.LastAt))
}

// Deferrals gathers such runs while a conversation is written: a job that takes a day
// leaves an answer for every poll, and they all say the same.
type Deferrals struct {
	Tell func(Deferral) // writes one

	open bool
	run  Deferral
	job  message.DeferredHandle // that the newest message left pending
}

// Take reports whether a message is part of such a run, which is told as one. Any
// other message ends the run.
func (d *Deferrals) Take(m message.Message, timestamp int64) bool {
	job := pendingJob(m)
	again := job.Raw != nil && job.Equal(d.job)
	if !again || !empty(m) {
		d.End()
	}
	d.job = job
	if job.Raw == nil || !empty(m) {
		return false
	}
	if !d.open {
		d.open, d.run = true, Deferral{First: m, At: timestamp}
	}
	if again {
		d.run.Polls++
	}
	d.run.LastAt, d.run.Failed = timestamp, message.ProviderError(m)
	return true
}

// End tells the run that is open, before anything that is no message.
func (d *Deferrals) End() {
	if d.open {
		d.open = false
		d.Tell(d.run)
	}
}

// deferredLine is a run in a document.
func deferredLine(run Deferral) string {
	line := speaker(run.First)
	if run.At > 0 {
		line += " · " + instant(run.At)
	}
	line += " · " + run.Text(func(ms int64) string { return "at " + instant(ms) })
	if run.Failed.Known {
		line += ", last poll: " + run.Failed.Reason()
	}
	return line
}

// pendingJob is the job that an answer leaves pending, without Raw for none.
func pendingJob(m message.Message) message.DeferredHandle {
	if m.Role() != message.RoleAssistant || m.StopReason() != message.StopDeferred {
		return message.DeferredHandle{}
	}
	raw, _ := m.Get("deferred")
	return message.DeferredHandle{Raw: raw}
}

func empty(m message.Message) bool {
	blocks, err := m.Blocks()
	return err == nil && len(blocks) == 0 && m.Text() == ""
}
