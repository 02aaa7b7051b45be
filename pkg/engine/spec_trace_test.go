package engine_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// specTraces are the transactions of the specification's tables and worked
// examples, in its notation (spec §0.7, §9.3 tier B). Their goldens in
// testdata/spec are written beside the text and never generated: a file per
// section, a part per row, behind "== ". A trace begins where from is reset.
var specTraces = map[string]rows{
	"0.4-slack-thread":   {"a thread of a channel": slackThread},
	"0.5-crash-mid-tool": crashMidTool,
	"3.2-deferred":       deferredRows,
	"3.6-acceptance":     acceptanceRows,
	"3.7-generation":     generationRows,
	"3.8-tools":          toolRows,
	"3.9-overflow":       overflowRows,
	"3.9-summaries":      summaryRows,
	"3.10-navigation":    navigationRows,
	"3.11-queues":        queueRows,
}

// rows are the traces of one section.
type rows = map[string]func(t *testing.T, w *enginetest.World, from *enginetest.Trace)

func TestSpecTraces(t *testing.T) {
	for file, rows := range specTraces {
		golden := goldenParts(t, file)
		for name, row := range rows {
			t.Run(file+"/"+name, func(t *testing.T) {
				want, ok := golden[name]
				if !ok {
					t.Fatal("no golden")
				}
				bubble(t, func(t *testing.T, w *enginetest.World) {
					w.Quiet = true
					var commits enginetest.Trace
					w.Decorate = func(b store.Backend) store.Backend {
						return committing{b, func(tx store.Tx) { commits.Add("%s", enginetest.TxString(tx)) }}
					}
					row(t, w, &commits)
					enginetest.Equal(t, "transactions", strings.Split(strings.TrimSpace(commits.String()), "\n"), want)
				})
			})
		}
		for name := range golden {
			if rows[name] == nil {
				t.Errorf("%s: nothing makes the trace of %q", file, name)
			}
		}
	}
	files, err := os.ReadDir(filepath.Join("testdata", "spec"))
	if err != nil || len(files) != len(specTraces) {
		t.Errorf("%d goldens for %d sections, %v", len(files), len(specTraces), err)
	}
}

// goldenParts reads the parts of a golden without their comments.
func goldenParts(t *testing.T, file string) map[string][]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "spec", file+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	parts, name := make(map[string][]string), ""
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSuffix(line, "\n")
		if title, ok := strings.CutPrefix(line, "== "); ok {
			name = title
			parts[name] = nil
		} else if line != "" && !strings.HasPrefix(line, "#") {
			parts[name] = append(parts[name], line)
		}
	}
	return parts
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// passOf drives one pass with a poll permit and through retries.
func passOf(t *testing.T, w *enginetest.World, id string) engine.DriveOutcome {
	t.Helper()
	d, err := w.Lane.Drive(context.Background(), engine.DriveOptions{OperationID: id, WaitForRetry: true, PollDeferred: true})
	must(t, err)
	return d
}

// between keeps what is committed between two breakpoints of a manual drive, to
// the end of the pass when last is "".
func between(t *testing.T, w *enginetest.World, from *enginetest.Trace, id, first, last string) {
	t.Helper()
	done := parkAt(t, w, first, engine.DriveOptions{OperationID: id, WaitForRetry: true, PollDeferred: true})
	from.Reset()
	if last != "" {
		w.Lane.ExecuteAction(t.Context())
		executeTo(t, w, last)
		_ = w.Harness.Close()
		<-done
		return
	}
	for !over(done) {
		w.Lane.ExecuteAction(t.Context())
	}
	must(t, (<-done).err)
}

// answering opens a world in manual mode whose tool is "read".
func answering(t *testing.T, w *enginetest.World, replies ...enginetest.Reply) {
	t.Helper()
	w.Options.Manual = true
	if w.Options.Tools == nil {
		arm(w, puppet{name: "read"})
	}
	w.Model.Reply = enginetest.Sequence(replies...)
	deferrable(w)
	activate(t, w)
}

func slackThread(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
	arm(w, puppet{name: "search", run: func(_ context.Context, call effect.Invocation) (message.ToolResult, error) {
		call.Update(text("half"), true)
		return text("search is done"), nil
	}})
	block := message.Block{Type: message.BlockText}
	said := message.TextBlock("Looking.")
	settled := ending(message.StopToolUse)
	settled.Content = []message.Block{said, {Type: message.BlockToolCall, ID: "call-0", Name: "search", Arguments: json.RawMessage(`{}`)}}
	looking := enginetest.Reply{Events: []message.StreamEvent{
		{Type: message.EventStart, Message: ending(message.StopPending).Message()},
		{Type: message.EventTextStart, Block: block},
		{Type: message.EventTextDelta, Delta: "Looking."},
		{Type: message.EventTextEnd, Block: said},
		{Type: message.EventDone, Reason: message.StopToolUse, Message: settled.Message()},
	}}
	w.Model.Reply = enginetest.Sequence(whole("welcome"), looking, whole("Nothing."))
	w.Open()
	d := w.Prompt("a channel")
	lane, err := w.Harness.CreateLane(t.Context(), "slack", d.Outcome.LeafID, engine.Configure{Model: &enginetest.Ref, ActiveToolNames: &[]string{"search"}})
	must(t, err)
	_ = w.Harness.Close()
	w.Options.Hooks.BeforeRun = []engine.Hook[engine.BeforeRun, []message.Message]{
		func(context.Context, engine.BeforeRun) ([]message.Message, error) {
			return []message.Message{message.NewUser("be brief", nil, w.Clock.Now())}, nil
		},
	}
	w.Open()
	w.Lane, err = w.Harness.Lane(lane.Name())
	must(t, err)
	from.Reset()
	passOf(t, w, w.Accept("what changed in auth last week?"))
}

// interruptedCall lets a process die in the first of some calls after it saved one
// update; the tools of the next process answer.
func interruptedCall(t *testing.T, w *enginetest.World, from *enginetest.Trace, safe bool, names ...string) (id string) {
	t.Helper()
	var h held
	tools := puppets{h.puppet(names[0], safe)}
	for _, name := range names[1:] {
		tools = append(tools, puppet{name: name})
	}
	w.Options.ToolExecution = op.Sequential
	arm(w, tools...)
	answering(t, w, calls(names...), whole("ok"))
	id = w.Accept("go")
	done := parkAt(t, w, "assistant.settlement", engine.DriveOptions{OperationID: id})
	from.Reset()
	executeTo(t, w, "tool.execute")
	w.Lane.ExecuteAction(t.Context())
	<-h.begun
	h.do(func() { h.call.Update(text("u1"), true) })
	closed := begin(func() (struct{}, error) { return struct{}{}, w.Harness.Close() })
	h.finish()
	<-closed
	<-done
	tools[0] = puppet{name: names[0], safe: safe}
	arm(w, tools...)
	w.Open()
	return id
}

var crashMidTool = rows{
	"a crash after one checkpoint": func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		id := interruptedCall(t, w, from, false, "delete", "test")
		done := parkAt(t, w, "tool.execute", engine.DriveOptions{OperationID: id})
		_ = w.Harness.Close()
		<-done
	},
	"the same with a tool that is safe to replay": func(t *testing.T, w *enginetest.World, from *enginetest.Trace) {
		id := interruptedCall(t, w, from, true, "read")
		from.Reset()
		done := parkAt(t, w, "assistant.intent", engine.DriveOptions{OperationID: id})
		_ = w.Harness.Close()
		<-done
	},
}
