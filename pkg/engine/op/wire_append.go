package op

import (
	"fmt"
	"strconv"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// A run without tools commits its state six times. What such a run is made of is
// appended by hand, the rest is left to encoding/json.

// stateSize holds the usual state of a run.
const stateSize = 1 << 10

// MarshalJSON writes the state of §3.2.
func (s RunState) MarshalJSON() ([]byte, error) {
	dst := append(make([]byte, 0, stateSize), `{"kind":"run","control":`...)
	dst, err := s.Control.append(dst)
	if err != nil {
		return nil, err
	}
	if dst, err = s.Settings.append(append(dst, `,"settings":`...)); err != nil {
		return nil, err
	}
	if dst, err = appendPhase(append(dst, `,"phase":`...), s.Phase); err != nil {
		return nil, err
	}
	dst = s.Inbox.append(append(dst, `,"inbox":`...))
	dst, _ = s.LatestAssistantEntryID.AppendJSON(append(dst, `,"latestAssistantEntryId":`...))
	return append(dst, '}'), nil
}

func appendAny(dst []byte, x any) ([]byte, error) {
	b, err := marshal(x)
	return append(dst, b...), err
}

func (c Control) append(dst []byte) ([]byte, error) {
	if c.Status == Running {
		return append(dst, `{"status":"running"}`...), nil
	}
	return appendAny(dst, c)
}

func (s Settings) append(dst []byte) ([]byte, error) {
	dst = appendBool(dst, `{"compaction":{"enabled":`, s.Compaction.Enabled)
	dst = appendNumber(dst, `,"reserveTokens":`, s.Compaction.ReserveTokens)
	dst = appendNumber(dst, `,"keepRecentTokens":`, s.Compaction.KeepRecentTokens)
	dst = appendText(dst, `},"steeringMode":`, string(s.SteeringMode))
	dst = appendText(dst, `,"followUpMode":`, string(s.FollowUpMode))
	dst = appendText(dst, `,"toolExecution":`, string(s.ToolExecution))
	dst, err := appendOptions(append(dst, `,"streamOptions":`...), s.StreamOptions)
	return append(dst, '}'), err
}

func (i Inbox) append(dst []byte) []byte {
	dst = store.AppendTexts(append(dst, `{"steer":`...), i.Steer)
	dst = store.AppendTexts(append(dst, `,"followUp":`...), i.FollowUp)
	dst = store.AppendTexts(append(dst, `,"writes":`...), i.Writes)
	return append(dst, '}')
}

// MarshalJSON writes empty queues as [], never null.
func (i Inbox) MarshalJSON() ([]byte, error) { return i.append(nil), nil }

func appendPhase(dst []byte, p Phase) ([]byte, error) {
	switch p := p.(type) {
	case Checkpoint:
		return p.append(dst)
	case Assistant:
		return p.append(dst)
	}
	return appendAny(dst, p)
}

// MarshalJSON writes the phase with its kind.
func (c Checkpoint) MarshalJSON() ([]byte, error) { return c.append(nil) }

func (c Checkpoint) append(dst []byte) ([]byte, error) {
	dst, err := c.Continuation.append(append(dst, `{"kind":"checkpoint","continuation":`...))
	dst = appendText(dst, `,"triggerEntryId":`, c.TriggerEntryID)
	if c.ThresholdCheckedTriggerEntryID != "" {
		dst = appendText(dst, `,"thresholdCheckedTriggerEntryId":`, c.ThresholdCheckedTriggerEntryID)
	}
	if c.SkipInboxOnce {
		dst = append(dst, `,"skipInboxOnce":true`...)
	}
	return append(dst, '}'), err
}

// MarshalJSON writes the field that belongs to the kind.
func (c Continuation) MarshalJSON() ([]byte, error) { return c.append(nil) }

func (c Continuation) append(dst []byte) ([]byte, error) {
	switch c.Kind {
	case NeedAssistantKind:
		dst = appendBool(dst, `{"kind":"need_assistant","overflowRecoveryUsed":`, c.OverflowRecoveryUsed)
	case MayFinishKind:
		dst = appendBool(dst, `{"kind":"may_finish","includeFinalAssistant":`, c.IncludeFinalAssistant)
	default:
		return nil, fmt.Errorf("unknown continuation %q", c.Kind)
	}
	return append(dst, '}'), nil
}

// MarshalJSON writes the phase with its kind.
func (a Assistant) MarshalJSON() ([]byte, error) { return a.append(nil) }

func (a Assistant) append(dst []byte) (_ []byte, err error) {
	dst = append(dst, `{"kind":"assistant","generation":`...)
	switch g := a.Generation.(type) {
	case Ready:
		dst, err = g.append(dst)
	case EffectPending:
		dst, err = g.append(dst)
	default:
		dst, err = appendAny(dst, g)
	}
	return append(dst, '}'), err
}

// MarshalJSON writes the generation with its status.
func (g Ready) MarshalJSON() ([]byte, error) { return g.append(nil) }

func (g Ready) append(dst []byte) ([]byte, error) {
	dst, err := g.Context.append(append(dst, `{"status":"ready","context":`...))
	return append(appendNumber(dst, `,"nextAttempt":`, g.NextAttempt), '}'), err
}

// MarshalJSON writes the generation with its status.
func (g EffectPending) MarshalJSON() ([]byte, error) { return g.append(nil) }

func (g EffectPending) append(dst []byte) ([]byte, error) {
	dst, err := g.Context.append(append(dst, `{"status":"effect_pending","context":`...))
	dst = appendNumber(dst, `,"attempt":`, g.Attempt)
	dst = appendText(dst, `,"responseEntryId":`, g.ResponseEntryID)
	dst = appendText(dst, `,"usageId":`, g.UsageID)
	dst = appendNumber(dst, `,"intendedOutputLimit":`, g.IntendedOutputLimit)
	return append(appendNumber(dst, `,"contextWindow":`, g.ContextWindow), '}'), err
}

func (c GenerationContext) append(dst []byte) ([]byte, error) {
	dst = appendText(dst, `{"stepId":`, c.StepID)
	dst = appendText(dst, `,"triggerEntryId":`, c.TriggerEntryID)
	dst, _ = c.Configuration.AppendJSON(append(dst, `,"configuration":`...))
	dst, err := appendOptions(append(dst, `,"streamOptions":`...), c.StreamOptions)
	dst = appendNumber(dst, `,"retryPolicy":{"maxAttempts":`, c.RetryPolicy.MaxAttempts)
	dst = appendNumber(dst, `,"baseDelayMs":`, c.RetryPolicy.BaseDelayMs)
	return append(appendBool(dst, `},"overflowRecoveryUsed":`, c.OverflowRecoveryUsed), '}'), err
}

func appendOptions(dst []byte, o message.StreamOptions) ([]byte, error) {
	if o.MaxTokens == nil && o.Temperature == nil && len(o.Deferred) == 0 {
		return append(dst, "{}"...), nil
	}
	return appendAny(dst, o)
}

func appendText(dst []byte, before, text string) []byte {
	return rawjson.AppendQuote(append(dst, before...), text)
}

func appendNumber(dst []byte, before string, n int64) []byte {
	return rawjson.AppendInt(append(dst, before...), n)
}

func appendBool(dst []byte, before string, b bool) []byte {
	return strconv.AppendBool(append(dst, before...), b)
}

// AppendJSON writes the acceptance data. The intent of a run is written by hand,
// as there is one for every prompt.
func (o Operation) AppendJSON(dst []byte) ([]byte, error) {
	dst = rawjson.AppendQuote(append(dst, `{"operationId":`...), o.OperationID)
	dst = rawjson.AppendQuote(append(dst, `,"lane":`...), o.Lane)
	dst, _ = o.SourceLeafID.AppendJSON(append(dst, `,"sourceLeafId":`...))
	dst = rawjson.AppendInt(append(dst, `,"startedAt":`...), o.StartedAt)
	dst = append(dst, `,"intent":`...)
	if i := o.Intent; i.Kind == KindRun && i.CustomInstructions == "" {
		dst = store.AppendTexts(append(dst, `{"kind":"run","promptEntryIds":`...), i.PromptEntryIDs)
		return append(dst, "}}"...), nil
	}
	intent, err := o.Intent.MarshalJSON()
	return append(append(dst, intent...), '}'), err
}
