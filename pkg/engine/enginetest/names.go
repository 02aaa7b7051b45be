package enginetest

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// A name marks what kind of id follows; shorten numbers the ids of each kind.
func entryName(id string) string {
	if id == "" {
		return "null"
	}
	return "e:" + id
}

func usageName(id string) string     { return "u:" + id }
func operationName(id string) string { return "o:" + id }
func stepName(id string) string      { return "s:" + id }
func taskName(id string) string      { return "t:" + id }

var idPattern = regexp.MustCompile(`(?:([euost]):)?([0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12})`)

// shorten replaces every id by its kind and number.
func shorten(text string) string {
	names := make(map[string]string)
	counts := make(map[string]int)
	return idPattern.ReplaceAllStringFunc(text, func(match string) string {
		groups := idPattern.FindStringSubmatch(match)
		kind, id := groups[1], groups[2]
		if name, ok := names[id]; ok {
			return name
		}
		if kind == "" {
			return match
		}
		counts[kind]++
		names[id] = fmt.Sprintf("%s%d", kind, counts[kind])
		return names[id]
	})
}

// valueString writes a value of the harness the way Part 3 speaks of it.
func valueString(w store.Write) string {
	switch w.Address.Namespace {
	case "pi.lane.leaf":
		var leaf store.LeafID
		if json.Unmarshal(w.Value, &leaf) == nil {
			return entryName(string(leaf))
		}
	case "pi.lane.state":
		var s store.LaneState
		if json.Unmarshal(w.Value, &s) == nil {
			return laneString(s)
		}
	case "pi.op.meta":
		var o op.Operation
		if json.Unmarshal(w.Value, &o) == nil {
			return intentString(o.Intent) + " from " + entryName(string(o.SourceLeafID))
		}
	case "pi.op.state":
		if s, err := op.DecodeState(w.Value); err == nil {
			return StateString(s)
		}
	case "pi.pending.entry":
		var p store.PendingEntry
		if json.Unmarshal(w.Value, &p) == nil {
			return contentString(p.Entry("", ""))
		}
	case "pi.op.preparation":
		if p, err := op.DecodePreparation(w.Value); err == nil {
			return preparationString(p)
		}
	case "pi.lane.lastResult":
		var r op.LaneLastResult
		if json.Unmarshal(w.Value, &r) == nil {
			return resultString(r)
		}
	}
	return string(w.Value)
}

func entryNames(ids []string) []string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = entryName(id)
	}
	return names
}

func laneString(s store.LaneState) string {
	text := "idle"
	if s.CurrentOperationID != "" {
		text = "runs " + operationName(string(s.CurrentOperationID))
	}
	if len(s.PendingNextRun) > 0 {
		text += fmt.Sprintf(", next run %v", entryNames(s.PendingNextRun))
	}
	return text
}

func resultString(r op.LaneLastResult) string {
	text := fmt.Sprintf("%s %s at %s", operationName(r.OperationID), r.Outcome, entryName(string(r.LeafID)))
	if r.Kind == op.KindNavigation {
		text += ", was at " + entryName(string(r.OldLeafID))
	}
	if r.SummaryEntryID != "" {
		text += ", summary " + entryName(r.SummaryEntryID)
	}
	if r.RunCompletion != "" {
		text += " by " + string(r.RunCompletion)
	}
	if r.FinalAssistantEntryID != "" {
		text += ", answer " + entryName(r.FinalAssistantEntryID)
	}
	if r.Error != nil {
		text += fmt.Sprintf(", %s %q", r.Error.Code, r.Error.Message)
	}
	return text
}

// StateString writes a state: where it stands, then what else differs from a
// fresh one.
func StateString(s op.State) string {
	run, ok := s.(op.RunState)
	if !ok {
		return structuralState(s) + controlString(s.Cancel())
	}
	text := phaseString(run.Phase) + controlString(run.Control)
	if !run.Inbox.Empty() {
		text += fmt.Sprintf(", inbox %v %v %v", entryNames(run.Inbox.Steer), entryNames(run.Inbox.FollowUp), entryNames(run.Inbox.Writes))
	}
	if run.LatestAssistantEntryID != "" {
		text += ", latest " + entryName(string(run.LatestAssistantEntryID))
	}
	return text
}

func phaseString(p op.Phase) string {
	switch p := p.(type) {
	case op.Checkpoint:
		return checkpointString(p)
	case op.Assistant:
		return generationString(p.Generation)
	case op.FailureDrain:
		by := "response " + entryName(p.Provenance.EntryID)
		if p.Provenance.Kind == op.FromStructural {
			by = "task " + taskName(p.Provenance.TaskID)
		}
		return fmt.Sprintf("failure_drain %s %q by %s", p.Error.Code, p.Error.Message, by)
	case op.Tools:
		return toolsString(p.Batch)
	case op.DeferredPhase:
		return deferredString(p.Deferred)
	case op.InRunCompaction:
		return fmt.Sprintf("compaction for %s %s, then %s", p.Reason, summaryString(p.Structural), checkpointString(p.ResumeAfter))
	case op.Starting:
		return "starting"
	}
	panic("unreachable: phase of unknown kind")
}

func continuationString(c op.Continuation) string {
	switch {
	case c.OverflowRecoveryUsed:
		return string(c.Kind) + " (overflow recovery used)"
	case c.Kind == op.MayFinishKind && !c.IncludeFinalAssistant:
		return string(c.Kind) + " (without an answer)"
	}
	return string(c.Kind)
}

func generationString(g op.Generation) string {
	switch g := g.(type) {
	case op.Ready:
		return fmt.Sprintf("assistant ready, attempt %d of %d of %s with %s", g.NextAttempt, g.Context.RetryPolicy.MaxAttempts, stepName(g.Context.StepID), g.Context.Configuration.Model)
	case op.EffectPending:
		return fmt.Sprintf("assistant effect_pending, attempt %d, answer %s, usage %s, at most %d of %d tokens",
			g.Attempt, entryName(g.ResponseEntryID), usageName(g.UsageID), g.IntendedOutputLimit, g.ContextWindow)
	case op.RetryWait:
		return fmt.Sprintf("assistant retry_wait, attempt %d not before %s: %q", g.NextAttempt, offset(g.NotBefore), g.ErrorMessage)
	}
	panic("unreachable: generation of unknown status")
}

// offset writes a time as what it is away from the start of the clock.
func offset(ms int64) string { return fmt.Sprintf("%+d ms", ms-Start) }
