package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
)

// batchWorld is a world whose first answer calls a tool once for each of ids.
func batchWorld(t *testing.T, run func(context.Context, *enginetest.World, effect.Invocation) (message.ToolResult, error), ids ...string) (*enginetest.World, *enginetest.Toolbox) {
	w := enginetest.InMemory(t)
	*w.Pace = enginetest.Free
	box := w.Tools(filepath.Join(t.TempDir(), "ran"), &enginetest.Tool{Name: "work", Run: run})
	var calls []message.Block
	for _, id := range ids {
		calls = append(calls, enginetest.Call(id, "work", `{}`))
	}
	w.Model.Reply = enginetest.Sequence(enginetest.Ask(calls...), enginetest.Say("done"))
	return w, box
}

func openWithTool(t *testing.T, w *enginetest.World) {
	t.Helper()
	w.Open()
	if err := w.Lane.Configure(t.Context(), engine.Configure{ActiveToolNames: &[]string{"work"}}); err != nil {
		t.Fatal(err)
	}
}

// §3.8, §5.7: the calls of a parallel batch are cleared and started in one pass in
// source order; so the N-th breakpoint of a kind is the same however they are
// scheduled.
// D43: its details name the call.
func TestParallelAdmissionOrder(t *testing.T) {
	want := []string{"tool.intent 0", "tool.execute 0", "tool.intent 1", "tool.execute 1", "tool.intent 2", "tool.execute 2"}
	for try := range 60 {
		w, _ := batchWorld(t, nil, "a", "b", "c")
		w.Options.Manual = true
		openWithTool(t, w)
		id := w.Accept("go")
		done := make(chan error, 1)
		go func() {
			_, err := w.Lane.Drive(context.Background(), engine.DriveOptions{OperationID: id})
			done <- err
		}()
		var got []string
		for len(done) == 0 {
			a, ok := w.Lane.ExecuteAction(t.Context())
			if !ok || a.Kind != "tool.intent" && a.Kind != "tool.execute" {
				continue
			}
			var details struct{ SourceIndex int }
			if err := json.Unmarshal(a.Details, &details); err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%s %d", a.Kind, details.SourceIndex))
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("try %d (-want +got):\n%s", try, diff)
		}
		w.Close()
	}
}

// Started in order, they run beside each other: here each waits for the next.
func TestParallelExecution(t *testing.T) {
	ids := []string{"a", "b", "c"}
	turn := map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{}), "c": make(chan struct{}), "": make(chan struct{})}
	next := map[string]string{"a": "b", "b": "c", "c": ""}
	close(turn[""])
	w, _ := batchWorld(t, func(ctx context.Context, _ *enginetest.World, call effect.Invocation) (message.ToolResult, error) {
		<-turn[next[call.CallID]]
		close(turn[call.CallID])
		return enginetest.Result(call.CallID), nil
	}, ids...)
	openWithTool(t, w)
	var started []string
	w.Harness.On(func(e op.Event) {
		if e.Type == op.EventToolStart {
			started = append(started, e.Tool.CallID)
		}
	})
	if d := w.Prompt("go"); d.Outcome.Kind != op.Completed {
		t.Fatalf("the run ended as %s", d.Outcome.Kind)
	}
	enginetest.Equal(t, "started", started, ids)
}

// An abort between two clearances: what has started settles with its own result,
// and what was not cleared never is (§4.6).
func TestParallelAbortAmongIntents(t *testing.T) {
	w, box := batchWorld(t, nil, "a", "b", "c")
	w.Options.Manual = true
	openWithTool(t, w)
	id := w.Accept("go")
	type end struct {
		engine.DriveOutcome
		error
	}
	done := make(chan end, 1)
	go func() {
		d, err := w.Lane.Drive(context.Background(), engine.DriveOptions{OperationID: id})
		done <- end{d, err}
	}()
	intents := 0
	for len(done) == 0 {
		a, ok := w.Lane.PeekAction(t.Context())
		if !ok {
			continue
		}
		if a.Kind == "tool.intent" {
			if intents++; intents == 3 {
				if _, err := w.Lane.RequestAbort(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				continue
			}
		}
		w.Lane.ExecuteAction(t.Context())
	}
	if d := <-done; d.error != nil || d.Outcome.Kind != op.Aborted {
		t.Fatalf("the run ended with %+v", d)
	}
	ran, err := box.Ran()
	if err != nil {
		t.Fatal(err)
	}
	enginetest.Equal(t, "ran", ran, map[string]int{"a": 1, "b": 1})
	entries, err := enginetest.Conversation(t.Context(), w.View())
	if err != nil {
		t.Fatal(err)
	}
	var results []string
	for _, said := range entries {
		if said.Role == message.RoleToolResult {
			results = append(results, said.Text)
		}
	}
	never := "the run was aborted before this call started"
	enginetest.Equal(t, "results", results, []string{"work did {}", "work did {}", never})
	w.Verify()
}
