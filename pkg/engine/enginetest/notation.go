package enginetest

import (
	"fmt"
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// The notation of what Part 3 has beyond a run without tools.

func intentString(i op.Intent) string {
	switch i.Kind {
	case op.KindRun:
		return fmt.Sprintf("run %v", entryNames(i.PromptEntryIDs))
	case op.KindNavigation:
		text := "navigation to " + entryName(string(i.TargetID))
		if i.Summarize {
			text += " with a summary"
		}
		return text
	}
	return string(i.Kind)
}

// contentString writes what an entry holds, or will hold.
func contentString(e store.NewEntry) string {
	switch e.Type {
	case store.TypeMessage:
		return messageString(store.Entry{Structure: store.Structure{Type: e.Type}, Payload: e.Payload}.Message())
	case store.TypeCompaction, store.TypeBranchSummary:
		return string(e.Type) + summaryPayload(e.Payload)
	}
	return string(e.Type) + " " + e.CustomType
}

func summaryPayload(payload []byte) string {
	summary, _ := rawjson.GetString(payload, "summary")
	if at := strings.IndexByte(summary, '\n'); at >= 0 {
		summary = summary[:at]
	}
	text := fmt.Sprintf(" %q", summary)
	if tail, ok := rawjson.Get(payload, "retainedTail"); ok {
		text += " keeping " + messagesString(tail)
	}
	if from, ok := rawjson.GetString(payload, "fromId"); ok {
		text += " from " + entryName(from)
	}
	return text
}

func messagesString(list []byte) string {
	var texts []string
	for raw, err := range rawjson.Elements(list) {
		if err == nil {
			texts = append(texts, messageString(raw))
		}
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func preparationString(p op.Preparation) string {
	if p.Kind == op.SummaryBranch {
		return fmt.Sprintf("branch preparation of %d messages", len(p.Messages))
	}
	return fmt.Sprintf("preparation: summarize %d, turn prefix %d, keep %s", len(p.Summarize), len(p.TurnPrefix), messagesString(p.Tail()))
}

func controlString(c op.Control) string {
	if !c.Cancelled() {
		return ""
	}
	if len(c.DrainedSteer)+len(c.DrainedFollowUp) == 0 {
		return ", cancelled"
	}
	return fmt.Sprintf(", cancelled with %v %v drained", entryNames(c.DrainedSteer), entryNames(c.DrainedFollowUp))
}

func checkpointString(c op.Checkpoint) string {
	text := fmt.Sprintf("checkpoint %s after %s", continuationString(c.Continuation), entryName(c.TriggerEntryID))
	if c.ThresholdCheckedTriggerEntryID != "" {
		text += ", threshold checked at " + entryName(c.ThresholdCheckedTriggerEntryID)
	}
	if c.SkipInboxOnce {
		text += ", skip inbox once"
	}
	return text
}

func toolsString(b op.ToolBatch) string {
	calls := make([]string, len(b.Calls))
	for i, c := range b.Calls {
		calls[i] = fmt.Sprintf("%d %s %s", c.SourceIndex, c.Status, entryName(c.ResultEntryID))
		if c.Replay != "" {
			calls[i] += " replay " + string(c.Replay)
		}
		if c.Executions > 1 {
			calls[i] += fmt.Sprintf(" start %d", c.Executions)
		}
		if c.Terminate {
			calls[i] += " terminate"
		}
	}
	return fmt.Sprintf("tools of %s [%s]", entryName(b.AssistantEntryID), strings.Join(calls, ", "))
}

func deferredString(d op.Deferred) string {
	text := fmt.Sprintf("deferred %s, poll %d of %s", d.Status, d.Poll, entryName(d.SourceEntryID))
	if d.Status == op.DeferredEffectPending {
		text += fmt.Sprintf(", answer %s, usage %s", entryName(d.ResponseEntryID), usageName(d.UsageID))
	}
	return text
}

func structuralState(s op.State) string {
	switch s := s.(type) {
	case op.CompactionState:
		return "compaction " + summaryString(s.Structural)
	case op.NavigationState:
		text := "navigation to " + entryName(string(s.TargetID))
		if s.Label != "" {
			text += fmt.Sprintf(" labelled %q", s.Label)
		}
		if s.Structural == nil {
			return text + " ready_to_commit"
		}
		return text + " " + summaryString(*s.Structural)
	}
	panic("unreachable: state of unknown kind")
}

func summaryString(s op.Structural) string {
	task := taskName(s.TaskID)
	switch g := s.Generation.(type) {
	case nil:
		return task + " deciding"
	case op.SummaryReady:
		return fmt.Sprintf("%s ready, attempt %d of %d, result %s", task, g.NextAttempt, g.Context.RetryPolicy.MaxAttempts, entryName(g.Context.ResultEntryID))
	case op.SummaryEffectPending:
		text := fmt.Sprintf("%s effect_pending, attempt %d", task, g.Attempt)
		if g.Request != nil {
			text += fmt.Sprintf(", request %d under %s", g.Request.Index, usageName(g.Request.UsageID))
		}
		if len(g.UsageIDs) > 0 {
			text += ", paid"
			for _, id := range g.UsageIDs {
				text += " " + usageName(id)
			}
		}
		return text
	case op.SummaryRetryWait:
		return fmt.Sprintf("%s retry_wait, attempt %d not before %s: %q", task, g.NextAttempt, offset(g.NotBefore), g.ErrorMessage)
	}
	panic("unreachable: summary of unknown status")
}
