package engine_test

import (
	"context"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
)

// An interrupted call that needs no tool is settled and placed before the pass
// waits for a tool that is not registered (spec §4.4).
func TestMissingToolAfterInterruptedCall(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		id := interruptedCall(t, w, &enginetest.Trace{}, false, "delete", "test")
		_ = w.Harness.Close()
		w.Options.Manual = false
		arm(w, puppet{name: "delete", run: never(t)})
		w.Open()
		want := op.Missing{Tools: []string{"test"}}
		for range 2 { // it waits for as long as the tool is missing
			d := w.Drive(engine.DriveOptions{OperationID: id})
			if d.Kind != engine.Waiting || d.Reason != engine.WaitMissing {
				t.Fatalf("the pass ended with %+v", d)
			}
			enginetest.Equal(t, "missing", *d.Missing, want)
			enginetest.Equal(t, "calls", statuses(batch(t, w, id)), []op.CallStatus{op.CallCompleted, op.CallPlanned})
		}
		_ = w.Harness.Close()
		arm(w, puppet{name: "delete", run: never(t)}, puppet{name: "test"})
		w.Open()
		finishPass(t, w, drive(w, engine.DriveOptions{OperationID: id}), op.Completed)
		got := talk(t, w)
		enginetest.Equal(t, "the second result", got[3], "toolResult: test is done")
	})
}

// A missing tool of an interrupted call that may run again keeps every later call
// as it is.
func TestMissingToolOfSafeCall(t *testing.T) {
	bubble(t, func(t *testing.T, w *enginetest.World) {
		var safe, unsafe held
		arm(w, safe.puppet("safe", true), unsafe.puppet("unsafe", false))
		w.Model.Reply = enginetest.Sequence(calls("safe", "unsafe"), whole("ok"))
		activate(t, w)
		id := w.Accept("hi")
		done := drive(w, engine.DriveOptions{OperationID: id})
		<-safe.begun
		<-unsafe.begun
		closed := begin(func() (struct{}, error) { return struct{}{}, w.Harness.Close() })
		safe.finish()
		unsafe.finish()
		<-closed
		<-done
		before := w.Records()
		arm(w, puppet{name: "unsafe", run: never(t)})
		w.Open()
		d := w.Drive(engine.DriveOptions{OperationID: id})
		if d.Reason != engine.WaitMissing {
			t.Fatalf("the pass ended with %+v", d)
		}
		enginetest.Equal(t, "what the pass left", w.Records(), before)
		_ = w.Harness.Close()
		arm(w, puppet{name: "safe", safe: true}, puppet{name: "unsafe", run: never(t)})
		w.Open()
		finishPass(t, w, drive(w, engine.DriveOptions{OperationID: id}), op.Completed)
		enginetest.Equal(t, "the first result", talk(t, w)[2], "toolResult: safe is done")
	})
}

// never is a tool that must not run.
func never(t *testing.T) func(context.Context, effect.Invocation) (message.ToolResult, error) {
	return func(_ context.Context, call effect.Invocation) (message.ToolResult, error) {
		t.Errorf("call %s ran again", call.CallID)
		return text("ran"), nil
	}
}
