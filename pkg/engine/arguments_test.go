package engine_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
)

// A call whose arguments the model left unfinished never runs, though a reading of
// them would pass: its result says why, and the run goes on.
func TestUnfinishedArgumentsNeverRun(t *testing.T) {
	w := enginetest.InMemory(t)
	box := w.Tools(filepath.Join(t.TempDir(), "ran"), &enginetest.Tool{Name: "work"})
	call := enginetest.Call("c1", "work", `{"path":"/srv/da"}`)
	call.ArgumentsError = "they are no JSON: unexpected end"
	w.Model.Reply = enginetest.Sequence(enginetest.Ask(call), enginetest.Say("I see"))
	w.Open()
	activateTool(t, w, "work")
	d := w.Prompt("go")
	if d.Kind != engine.Settled || d.Outcome.Kind != op.Completed {
		t.Fatalf("%+v", d)
	}
	ran, err := box.Ran()
	if err != nil || len(ran) != 0 {
		t.Errorf("ran %v, %v", ran, err)
	}
	result := ""
	for _, m := range w.Model.Requests()[1].Messages {
		if m.Role() == "toolResult" {
			result = string(m)
		}
	}
	if !strings.Contains(result, "invalid arguments: they are no JSON: unexpected end; the call was not run") || !strings.Contains(result, `"isError":true`) {
		t.Errorf("the model is told %s", result)
	}
	w.Settled()
}
