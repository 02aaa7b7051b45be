package engine

import (
	"context"
	"encoding/json"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Outcome is how an operation ended: the TerminalOperationOutcome of §5.1.
type Outcome struct {
	Operation    op.Kind
	RunID        string
	Kind         op.Outcome
	LeafID       store.LeafID
	FinalEntryID string          // with FinalMessage, or both absent
	FinalMessage message.Message // the newest settled answer
	Error        *op.Error       // failed
	OldLeafID    store.LeafID    // navigations
	// Entry is the compaction that a completed compaction published, or the
	// summary of a completed navigation.
	Entry *store.Entry
}

// AppendJSON writes the shape of §5.1.
func (o Outcome) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"operation":`...)
	dst = rawjson.AppendQuote(dst, string(o.Operation))
	dst = append(dst, `,"runId":`...)
	dst = rawjson.AppendQuote(dst, o.RunID)
	dst = append(dst, `,"kind":`...)
	dst = rawjson.AppendQuote(dst, string(o.Kind))
	if o.Operation == op.KindNavigation && o.Kind == op.Completed {
		dst = append(dst, `,"oldLeafId":`...)
		dst, _ = o.OldLeafID.AppendJSON(dst)
		dst = append(dst, `,"newLeafId":`...)
		dst, _ = o.LeafID.AppendJSON(dst)
	} else {
		dst = append(dst, `,"leafId":`...)
		dst, _ = o.LeafID.AppendJSON(dst)
	}
	if o.Entry != nil {
		key := `,"entry":`
		if o.Operation == op.KindNavigation {
			key = `,"summaryEntry":`
		}
		dst, _ = o.Entry.AppendJSON(append(dst, key...))
	}
	if o.Error != nil {
		dst = append(dst, `,"error":`...)
		dst = appendError(dst, o.Error)
	}
	if o.FinalEntryID != "" {
		dst = append(dst, `,"finalEntryId":`...)
		dst = rawjson.AppendQuote(dst, o.FinalEntryID)
		dst = append(append(dst, `,"finalMessage":`...), o.FinalMessage...)
	}
	return append(dst, '}'), nil
}

// MarshalJSON is AppendJSON.
func (o Outcome) MarshalJSON() ([]byte, error) { return o.AppendJSON(nil) }

func appendError(dst []byte, e *op.Error) []byte {
	dst = append(dst, `{"code":`...)
	dst = rawjson.AppendQuote(dst, e.Code)
	dst = append(dst, `,"message":`...)
	dst = rawjson.AppendQuote(dst, e.Message)
	if e.Details != nil {
		dst = append(append(dst, `,"details":`...), e.Details...)
	}
	return append(dst, '}')
}

// DriveKind says how a drive pass ended.
type DriveKind string

// The ends of a drive pass (spec §5.1).
const (
	Settled DriveKind = "settled"
	Waiting DriveKind = "waiting"
	Yielded DriveKind = "yielded"
)

// WaitReason says what a waiting operation waits for.
type WaitReason string

// The durable waits.
const (
	WaitRetry    WaitReason = "retry"
	WaitDeferred WaitReason = "deferred"
	WaitMissing  WaitReason = "missing_identities"
)

// DriveOutcome is the result of one pass (spec §5.1); the fields beyond Kind and
// OperationID belong to their kind or reason.
type DriveOutcome struct {
	Kind        DriveKind
	OperationID string
	Outcome     *Outcome
	Reason      WaitReason
	NotBefore   *int64          // Unix ms: retry, deferred
	Deferred    json.RawMessage // deferred: the handle
	Missing     *op.Missing
	// For people, and no part of the JSON: why identities are missing, why the poll of
	// this pass was not answered, and whether it is the job that is looked for, of
	// which the handle then has the key only.
	Why        *MissingIdentities
	PollFailed message.ErrorInfo
	Unsure     bool
}

// AppendJSON writes the shape of §5.1.
func (d DriveOutcome) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"kind":`...)
	dst = rawjson.AppendQuote(dst, string(d.Kind))
	dst = append(dst, `,"operationId":`...)
	dst = rawjson.AppendQuote(dst, d.OperationID)
	switch d.Kind {
	case Settled:
		dst = append(dst, `,"outcome":`...)
		dst, _ = d.Outcome.AppendJSON(dst)
	case Waiting:
		dst = append(dst, `,"reason":`...)
		dst = rawjson.AppendQuote(dst, string(d.Reason))
		if d.NotBefore != nil {
			dst = append(dst, `,"notBefore":`...)
			dst = rawjson.AppendInt(dst, *d.NotBefore)
		}
		if d.Deferred != nil {
			dst = append(append(dst, `,"deferred":`...), d.Deferred...)
		}
		if d.Missing != nil {
			dst = append(dst, `,"missing":`...)
			dst = appendMissing(dst, *d.Missing)
		}
	case Yielded:
	}
	return append(dst, '}'), nil
}

// MarshalJSON is AppendJSON.
func (d DriveOutcome) MarshalJSON() ([]byte, error) { return d.AppendJSON(nil) }

func appendMissing(dst []byte, m op.Missing) []byte {
	dst = append(append(dst, `{"tools":`...), namesJSON(m.Tools)...)
	if m.Model != "" {
		dst = append(dst, `,"model":`...)
		dst = rawjson.AppendQuote(dst, m.Model)
	}
	return append(dst, '}')
}

// hydrate completes a lane's last result with the messages that it names (spec
// §3.13).
func hydrate(ctx context.Context, q store.Queries, r op.LaneLastResult) (Outcome, error) {
	o := Outcome{Operation: r.Kind, RunID: r.OperationID, Kind: r.Outcome, LeafID: r.LeafID, Error: r.Error, OldLeafID: r.OldLeafID}
	named := r.FinalAssistantEntryID
	switch {
	case r.Kind == op.KindNavigation:
		named = r.SummaryEntryID
	case r.Kind == op.KindCompaction && r.Outcome == op.Completed:
		named = string(r.LeafID)
	}
	if named == "" {
		return o, nil
	}
	entries, err := q.Entries(ctx, []string{named})
	if err != nil {
		return o, err
	}
	e, ok := entries[named]
	switch {
	case !ok:
	case r.Kind == op.KindRun:
		o.FinalEntryID, o.FinalMessage = e.ID, e.Message()
	default:
		o.Entry = &e
	}
	return o, nil
}
