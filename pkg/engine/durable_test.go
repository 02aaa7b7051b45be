package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// A call that its process dies of is started three times in all, however many
// processes follow; then its result says so (D31).
func TestCallThatKillsItsProcess(t *testing.T) {
	for deaths := range 5 {
		t.Run(fmt.Sprint(deaths, " deaths"), func(t *testing.T) {
			w := enginetest.InMemory(t)
			box := w.Tools(filepath.Join(t.TempDir(), "ran"), &enginetest.Tool{Name: "deadly", Safe: true})
			w.Model.Reply = enginetest.Sequence(enginetest.Ask(enginetest.Call("a", "deadly", `{}`)), enginetest.Say("ok"))
			w.Open()
			activateTool(t, w, "deadly")
			id := w.Accept("go")
			w.Harness.Close()
			for n := range deaths {
				effects := 1 // the tool's, once its call is pending
				if n == 0 {
					effects = 2 // the request comes first
				}
				w.OpenMortal(enginetest.Death{Effect: effects, After: true})
				_, err := w.Lane.Drive(t.Context(), engine.DriveOptions{OperationID: id})
				var fault *store.Fault
				if n < op.MaxExecutions && !errors.As(err, &fault) {
					t.Fatalf("death %d: %v", n, err)
				}
				w.Harness.Close()
			}
			w.OpenMortal(enginetest.Death{})
			if _, err := w.Lane.Drive(t.Context(), engine.DriveOptions{OperationID: id}); err != nil {
				t.Fatal(err)
			}
			ran, err := box.Ran()
			if err != nil {
				t.Fatal(err)
			}
			enginetest.Equal(t, "starts", ran["a"], min(deaths+1, op.MaxExecutions))
			enginetest.Equal(t, "why", syntheticReason(t, w), map[bool]string{true: "interrupted"}[deaths >= op.MaxExecutions])
		})
	}
}

func activateTool(t *testing.T, w *enginetest.World, name string) {
	t.Helper()
	if err := w.Lane.Configure(t.Context(), engine.Configure{ActiveToolNames: &[]string{name}}); err != nil {
		t.Fatal(err)
	}
}

// syntheticReason is why the first tool result was not made by its tool, "" when
// it was.
func syntheticReason(t *testing.T, w *enginetest.World) string {
	t.Helper()
	entries, err := w.Session.ScanEntries(t.Context(), store.EntryQuery{Type: store.TypeMessage})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if m := e.Message(); m.Role() == message.RoleToolResult {
			details, _ := m.Get("details")
			reason, _ := rawjson.GetString(details, "synthetic")
			return reason
		}
	}
	t.Fatal("there is no result")
	return ""
}

// What a run was accepted with holds for every request of it, whichever process
// makes it and whatever that is set to (D34).
func TestDeferredChoiceIsDurable(t *testing.T) {
	w := enginetest.InMemory(t)
	w.Tools(filepath.Join(t.TempDir(), "ran"), &enginetest.Tool{Name: "ls", Safe: true})
	var got []string
	answers := enginetest.Sequence(enginetest.Fail("overloaded"), enginetest.Ask(enginetest.Call("a", "ls", `{}`)), enginetest.Say("ok"))
	w.Model.Reply = func(n int, req effect.Request) enginetest.Reply {
		got = append(got, fmt.Sprintf("%s of %d tokens", req.Options.Deferred, *req.Options.MaxTokens))
		return answers(n, req)
	}
	limit, other := int64(100), int64(200)
	w.Options.StreamOptions = message.StreamOptions{MaxTokens: &limit, Deferred: json.RawMessage(`{"window":"1h"}`)}
	w.Open()
	activateTool(t, w, "ls")
	id := w.Accept("go")
	w.Options.StreamOptions = message.StreamOptions{MaxTokens: &other}
	w.Reopen()
	w.Drive(engine.DriveOptions{OperationID: id, WaitForRetry: true})
	enginetest.Equal(t, "requests", got, []string{`{"window":"1h"} of 100 tokens`, `{"window":"1h"} of 100 tokens`, `{"window":"1h"} of 100 tokens`})

	got = nil
	w.Prompt("again")
	enginetest.Equal(t, "the next run", got, []string{" of 200 tokens"})
}
