package tool

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/message"
)

// TestProgress checks the cadence of spec §3.8.
func TestProgress(t *testing.T) {
	type update struct {
		At         time.Duration
		Text       string
		Checkpoint bool
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var got []update
		o := &Output{}
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			reportProgress(stop, o, func(r message.ToolResult, checkpoint bool) {
				got = append(got, update{time.Since(start), r.Content[0].Text, checkpoint})
			})
		}()
		print := func(at time.Duration, text string) {
			time.Sleep(at - time.Since(start))
			_, _ = o.Write([]byte(text))
		}
		const ms = time.Millisecond
		print(250*ms, "a")
		print(320*ms, "b")
		print(330*ms, "c")
		print(3000*ms+50*ms, "d")
		print(3100*ms+50*ms, "e")
		time.Sleep(10 * time.Second)
		close(stop)
		<-done
		_, _ = o.Write([]byte("f"))
		want := []update{
			{300 * ms, "a", true}, // the first text at once
			{400 * ms, "abc", false},
			{2300 * ms, "abc", true}, // not shown again, but not saved yet
			{3100 * ms, "abcd", false},
			{3200 * ms, "abcde", false},
			{4300 * ms, "abcde", true},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
