package op_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
)

// The durable state is a union of unions (§3.2). What belongs to each is read from
// the source, so that a new member fails here until every table knows it.

// seals are the methods that seal a union.
var seals = []string{"state", "phase", "generation", "summaryGeneration"}

// tags are the types whose constants tell members of a union apart.
var tags = []string{"ControlStatus", "ContinuationKind", "CallStatus", "Replay", "DeferredStatus", "ProvenanceKind", "SummaryKind", "CompactionReason"}

// members are the names of the union members that the source declares, and its
// tags as Type=value.
func members(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, file := range sources(t) {
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				seal := d.Recv != nil && d.Type.Params.NumFields()+d.Type.Results.NumFields() == 0
				if seal && slices.Contains(seals, d.Name.Name) {
					found = append(found, d.Recv.List[0].Type.(*ast.Ident).Name)
				}
			case *ast.GenDecl:
				if d.Tok == token.CONST {
					found = append(found, constants(t, d)...)
				}
			}
		}
	}
	slices.Sort(found)
	if len(found) < 30 {
		t.Fatalf("only %d members of the unions were found in the source: %v", len(found), found)
	}
	return found
}

func sources(t *testing.T) []*ast.File {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

func constants(t *testing.T, d *ast.GenDecl) []string {
	t.Helper()
	var found []string
	for _, spec := range d.Specs {
		v := spec.(*ast.ValueSpec)
		typ, ok := v.Type.(*ast.Ident)
		if !ok || !slices.Contains(tags, typ.Name) {
			continue
		}
		for _, value := range v.Values {
			text, err := strconv.Unquote(value.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, typ.Name+"="+text)
		}
	}
	return found
}

// collect adds the members that a value holds.
func collect(v reflect.Value, into map[string]bool) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			collect(v.Elem(), into)
		}
	case reflect.Slice:
		for i := range v.Len() {
			collect(v.Index(i), into)
		}
	case reflect.Struct:
		into[v.Type().Name()] = true
		for i := range v.NumField() {
			collect(v.Field(i), into)
		}
	case reflect.String:
		into[v.Type().Name()+"="+v.String()] = true
	}
}

func missing(t *testing.T, have map[string]bool, where string) {
	t.Helper()
	for _, m := range members(t) {
		if !have[m] {
			t.Errorf("%s know nothing of %s", where, m)
		}
	}
}

// restartStates are the states that this file answers for, by name: one for every
// point, and every status that a call may have.
func restartStates() map[string]op.State {
	states := map[string]op.State{}
	for p, s := range everyState() {
		states[string(p)] = s
	}
	batch := func(calls ...op.ToolCall) op.State {
		for i := range calls {
			calls[i].SourceIndex, calls[i].ResultEntryID = i, fmt.Sprintf("t%d", i)
		}
		return run(op.Tools{Batch: op.ToolBatch{AssistantEntryID: "r1", Configuration: config, TurnID: "s1", Calls: calls}}).State
	}
	planned := op.ToolCall{Status: op.CallPlanned}
	ready := op.ToolCall{Status: op.CallOutcomeReady}
	states["a planned call"] = batch(planned)
	states["a call never again"] = batch(op.ToolCall{Status: op.CallEffectPending, Replay: op.ReplayNever, Executions: 1}, planned)
	states["a safe call"] = batch(ready, op.ToolCall{Status: op.CallEffectPending, Replay: op.ReplaySafe, Executions: 1})
	states["a staged call"] = batch(ready, planned)
	states["a placed call"] = batch(op.ToolCall{Status: op.CallCompleted}, planned)
	failed := drain()
	failed.Provenance = op.Provenance{Kind: op.FromStructural, TaskID: "t1"}
	states["failed by a summary"] = run(failed).State
	states["an overflow"] = run(op.InRunCompaction{Reason: op.ReasonOverflow, Structural: op.Structural{TaskID: "t1"}, ResumeAfter: needAssistant()}).State
	branch := summary
	branch.Kind = op.SummaryBranch
	states["a branch summary"] = op.NavigationState{Control: running, TargetID: "e1", Structural: &op.Structural{TaskID: "t1", Generation: op.SummaryReady{Context: branch, NextAttempt: 1}}}
	for name, s := range maps.Clone(states) {
		states[name+", cancelled"] = cancelledState(s)
	}
	delete(states, string(op.PointTools)) // its batch is empty, which no history leaves
	delete(states, string(op.PointTools)+", cancelled")
	return states
}

// Every member of every union has a state here and a wire golden.
func TestUnionsAreKnown(t *testing.T) {
	have := map[string]bool{}
	for _, s := range restartStates() {
		collect(reflect.ValueOf(s), have)
	}
	missing(t, have, "the states of this file")
	golden := map[string]bool{}
	for _, w := range stateWires() {
		collect(reflect.ValueOf(w.state), golden)
	}
	for _, name := range []string{"SummaryKind=branch_summary", "CompactionReason=threshold", "CompactionReason=overflow"} {
		golden[name] = golden[name] || wireKnows(t, name) // tags that decide nothing in decoding
	}
	missing(t, golden, "the wire goldens")
}

// wireKnows reports whether a state with a tag survives its wire form.
func wireKnows(t *testing.T, tag string) bool {
	t.Helper()
	for _, s := range restartStates() {
		before, after := map[string]bool{}, map[string]bool{}
		collect(reflect.ValueOf(s), before)
		back, err := op.DecodeState(op.StateOf("op1").Set(s).Value)
		if err != nil {
			t.Fatal(err)
		}
		collect(reflect.ValueOf(back), after)
		if before[tag] && after[tag] {
			return true
		}
	}
	return false
}

// Every state has a step, and says what a drive would do there.
func TestEveryStateHasAStep(t *testing.T) {
	known := map[op.Point]bool{}
	for _, p := range points {
		known[p.point] = true
	}
	for name, s := range restartStates() {
		if step := op.Next(s); step < op.StepReconcile || step > op.StepNavigate {
			t.Errorf("%s: step %d", name, step)
		}
		if !known[op.PointOf(s)] {
			t.Errorf("%s: stands at %s, which the catalogue does not have", name, op.PointOf(s))
		}
		if len(op.Explain(s, now)) == 0 {
			t.Errorf("%s: a drive would do nothing", name)
		}
	}
}

// turnOf is the turn of a lane at a state.
func turnOf(s op.State) op.Turn {
	turn := run(op.Starting{})
	turn.State = s
	turn.Operation.Intent.Kind = op.KindOf(s)
	return turn
}

// orphanAnswer is what a process does with the effect of one that is gone: it
// settles it, takes it over, or gives it up; nil for a state that has none (§4.5).
func orphanAnswer(turn op.Turn) (*op.Plan, error) {
	m, err := op.Interrupted(nil, config.Model, "echo", now)
	if err != nil {
		return nil, err
	}
	var plan op.Plan
	switch point := op.PointOf(turn.State); {
	case op.Safe(turn.State):
		return nil, nil
	case point == op.PointEffectPending:
		plan, err = op.SettleOrphan(turn, m)
	case point == op.PointDeferredPending && turn.State.Cancel().Cancelled():
		plan, err = op.AbortPoll(turn, m)
	case point == op.PointDeferredPending:
		plan, err = op.IntendPoll(turn, "fresh", "fresher")
	case point == op.PointToolsPending:
		plan, err = orphanCall(turn)
	case op.StructuralOf(turn.State) != nil && turn.State.Cancel().Cancelled():
		return end(turn)
	case op.StructuralOf(turn.State) != nil:
		plan, err = op.SummaryOrphan(turn)
	default:
		return nil, fmt.Errorf("nobody answers for the effect at %s", point)
	}
	return &plan, err
}

func orphanCall(turn op.Turn) (op.Plan, error) {
	s, _ := turn.Run()
	for _, c := range s.Phase.(op.Tools).Batch.Calls {
		switch {
		case c.Status != op.CallEffectPending:
		case c.Repeatable() && !s.Control.Cancelled():
			return op.Restart(turn, c.SourceIndex)
		default:
			return op.Stage(turn, c.SourceIndex, op.CallOutcome{Result: result(c)})
		}
	}
	return op.Plan{}, fmt.Errorf("no call is pending")
}

func result(c op.ToolCall) message.Message {
	return message.NewToolResult(c.ResultEntryID, "ls", message.ToolResult{}, now)
}

func end(turn op.Turn) (*op.Plan, error) {
	if _, ok := turn.Run(); !ok {
		plan, err := op.EndStructural(turn)
		return &plan, err
	}
	plan, err := op.Finish(turn)
	return &plan, err
}

// Every effect that may be under way has an answer when its process is gone, and
// no other state has one.
func TestEveryOrphanHasAnAnswer(t *testing.T) {
	for name, s := range restartStates() {
		plan, err := orphanAnswer(turnOf(s))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if (plan == nil) != op.Safe(s) {
			t.Errorf("%s: safe %t, answer %v", name, op.Safe(s), plan)
		}
		if plan != nil && len(plan.Tx("op1", lane)) == 0 {
			t.Errorf("%s: the answer writes nothing", name)
		}
	}
}

// cancelAnswer is the next commit of a cancelled operation (§4.6).
func cancelAnswer(turn op.Turn) (*op.Plan, error) {
	s, ok := turn.Run()
	if !ok {
		return end(turn)
	}
	tools, ok := s.Phase.(op.Tools)
	if !ok {
		if point := op.PointOf(s); point == op.PointEffectPending || point == op.PointDeferredPending {
			return orphanAnswer(turn)
		}
		return end(turn)
	}
	for _, c := range tools.Batch.Calls {
		if c.Status == op.CallPlanned || c.Status == op.CallEffectPending {
			plan, err := op.Stage(turn, c.SourceIndex, op.CallOutcome{Result: result(c)})
			return &plan, err
		}
	}
	p := op.Placement{Configuration: config}
	for _, c := range tools.Batch.ReadyPrefix() {
		p.Results = append(p.Results, result(c))
	}
	plan, err := op.Materialize(turn, p)
	return &plan, err
}

// Cancellation leads every state to an aborted end, and no commit on the way
// leaves the cancellation behind.
func TestEveryStateHasACancelAnswer(t *testing.T) {
	for name, s := range restartStates() {
		turn := turnOf(s)
		plan, fresh := op.RequestCancel(turn)
		if fresh == s.Cancel().Cancelled() {
			t.Errorf("%s: a request to cancel is new: %t", name, fresh)
		}
		if fresh {
			turn.State = plan.Next
		}
		if op.Next(turn.State) != op.StepReconcile {
			t.Errorf("%s: cancelled, it goes on with step %d", name, op.Next(turn.State))
		}
		if outcome := reconciled(t, name, turn); outcome != op.Aborted {
			t.Errorf("%s: cancelled, it ends as %q", name, outcome)
		}
	}
}

func reconciled(t *testing.T, name string, turn op.Turn) op.Outcome {
	t.Helper()
	for range 10 {
		plan, err := cancelAnswer(turn)
		switch {
		case err != nil:
			t.Errorf("%s: at %s: %v", name, op.PointOf(turn.State), err)
			return ""
		case plan.Result != nil:
			return plan.Result.Outcome
		case plan.Next == nil || !plan.Next.Cancel().Cancelled():
			t.Errorf("%s: at %s: the next state is %v", name, op.PointOf(turn.State), plan.Next)
			return ""
		}
		turn.State = plan.Next
	}
	return ""
}
