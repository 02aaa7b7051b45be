package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// InspectOptions narrow and deepen an inspection.
type InspectOptions struct {
	Lane     string // "" is every lane
	Snapshot bool   // include each lane's snapshot
	// OwnerLive says that some process drives the session now (D23).
	OwnerLive bool
}

// LaneReport is what inspect shows of a lane: its execution, configuration and
// queues, and its snapshot when asked for (spec §5.1, §5.4).
type LaneReport struct {
	ExecutionInfo
	Config        *store.LaneConfiguration // nil: main has none yet
	Queues        Queues
	PendingWrites []PendingWrite
	Snapshot      *LaneSnapshot
}

// Queues are a lane's queued messages by the way they were queued.
type Queues struct {
	Steer, FollowUp, NextRun []QueuedItem
}

// QueuedItem is a message that waits under its reserved entry id.
type QueuedItem struct {
	EntryID string
	Message message.Message
}

// PendingWrite is a deferred tree write that waits for a checkpoint.
type PendingWrite struct {
	EntryID string
	Content store.PendingEntry
}

// LaneSnapshot is one lane as a user interface shows it (spec §5.4).
type LaneSnapshot struct {
	Report     *LaneReport
	Transcript []store.Entry // the context window with its compaction
	// Streaming is the latest partial answer: live, or reduced from frames.
	Streaming message.Message
	Running   []RunningTool
	Retry     *RetryInfo
	Faulted   bool
}

// RetryInfo describes a retry wait.
type RetryInfo struct {
	Attempt       int64
	MaxAttempts   int64
	NextAttemptAt int64 // Unix ms
}

// Inspect reports the lanes of a session from any reader; it takes no lease and
// writes nothing (D9). A lane whose leaf is missing is a *store.Corrupt.
func Inspect(ctx context.Context, q store.Queries, o InspectOptions) ([]LaneReport, error) {
	names, err := LaneNames(ctx, q)
	if err != nil {
		return nil, err
	}
	if o.Lane != "" {
		if !slices.Contains(names, o.Lane) {
			return nil, &LaneNotFound{Lane: o.Lane, Known: names}
		}
		names = []string{o.Lane}
	}
	reports := make([]LaneReport, len(names))
	for i, name := range names {
		err := reports[i].read(ctx, q, name, work{owner: Owner{Live: o.OwnerLive}}, o.Snapshot)
		if err == nil && !o.Snapshot {
			err = checkLeaf(ctx, q, reports[i].LeafID)
		}
		if err != nil {
			return nil, fmt.Errorf("inspect lane %s: %w", name, err)
		}
	}
	return reports, nil
}

// work is what is known of a lane's live work beyond what is stored.
type work struct {
	owner Owner
	// here says that this process drives the lane, so that what follows is newer
	// than anything stored.
	here       bool
	responseID string
	streaming  message.Message
	running    []RunningTool
}

func (r *LaneReport) read(ctx context.Context, q store.Queries, lane string, w work, snapshot bool) error {
	info, t, err := readExecution(ctx, q, lane, w.owner)
	if err != nil {
		return err
	}
	r.ExecutionInfo = info
	cfg, ok, err := store.Get(ctx, q, store.LaneConfig(lane))
	if err != nil {
		return err
	}
	if ok {
		r.Config = &cfg.Value
	}
	if err := r.readQueues(ctx, q, t); err != nil {
		return err
	}
	if snapshot {
		r.Snapshot, err = readSnapshot(ctx, q, r, t, w)
	}
	return err
}

func (r *LaneReport) readQueues(ctx context.Context, q store.Queries, t op.Turn) error {
	run, _ := t.Run()
	for _, queue := range []struct {
		ids  []string
		into *[]QueuedItem
	}{
		{run.Inbox.Steer, &r.Queues.Steer}, {run.Inbox.FollowUp, &r.Queues.FollowUp}, {t.LaneState.PendingNextRun, &r.Queues.NextRun},
	} {
		for _, id := range queue.ids {
			content, err := required(ctx, q, t.Lane, store.Pending(id))
			if err != nil {
				return err
			}
			*queue.into = append(*queue.into, QueuedItem{id, message.Message(content.Payload)})
		}
	}
	for _, id := range run.Inbox.Writes {
		content, err := required(ctx, q, t.Lane, store.Pending(id))
		if err != nil {
			return err
		}
		r.PendingWrites = append(r.PendingWrites, PendingWrite{id, content})
	}
	return nil
}

func readSnapshot(ctx context.Context, q store.Queries, r *LaneReport, t op.Turn, w work) (*LaneSnapshot, error) {
	s := &LaneSnapshot{Report: r}
	var err error
	if s.Transcript, err = contextBranch(ctx, q, t.Leaf); err != nil {
		return nil, err
	}
	run, ok := t.Run()
	if !ok {
		return s, nil
	}
	switch response := op.PendingResponse(run); {
	case response == "":
	case response == w.responseID:
		s.Streaming = w.streaming
	default:
		if s.Streaming, err = reduceFrames(ctx, q, t.Operation.OperationID, response); err != nil {
			return nil, err
		}
	}
	if tools, ok := run.Phase.(op.Tools); ok && !w.here {
		if s.Running, err = runningTools(ctx, q, t.Operation.OperationID, tools.Batch); err != nil {
			return nil, err
		}
	} else if ok {
		s.Running = w.running
	}
	if a, ok := run.Phase.(op.Assistant); ok {
		if wait, ok := a.Generation.(op.RetryWait); ok {
			s.Retry = &RetryInfo{wait.NextAttempt, wait.Context.RetryPolicy.MaxAttempts, wait.NotBefore}
		}
	}
	return s, nil
}

// runningTools are the calls whose effect may be under way, with their durable
// checkpoints (spec §5.4).
func runningTools(ctx context.Context, q store.Queries, operationID string, batch op.ToolBatch) ([]RunningTool, error) {
	entries, err := q.Entries(ctx, []string{batch.AssistantEntryID})
	if err != nil {
		return nil, err
	}
	calls := entries[batch.AssistantEntryID].Message().ToolCalls()
	var running []RunningTool
	for _, c := range batch.Calls {
		if c.Status != op.CallEffectPending || c.SourceIndex >= len(calls) {
			continue
		}
		call := calls[c.SourceIndex]
		r := RunningTool{InvocationID: c.ResultEntryID, ToolCallID: call.ID, ToolName: call.Name}
		args, _, err := store.Get(ctx, q, op.ToolArgsOf(operationID, batch.TurnID, c.SourceIndex))
		if err != nil {
			return nil, err
		}
		checkpoint, _, err := store.Get(ctx, q, op.ToolOutput(operationID, c.ResultEntryID))
		if err != nil {
			return nil, err
		}
		r.Args, r.Partial = args.Value, checkpoint.Value
		running = append(running, r)
	}
	return running, nil
}

func (r RunningTool) append(dst []byte) []byte {
	dst = append(dst, `{"toolCallId":`...)
	dst = rawjson.AppendQuote(dst, r.ToolCallID)
	dst = append(dst, `,"toolName":`...)
	dst = rawjson.AppendQuote(dst, r.ToolName)
	if r.Args != nil {
		dst = append(append(dst, `,"args":`...), r.Args...)
	}
	if r.Partial != nil {
		dst = append(append(dst, `,"partialResult":`...), r.Partial...)
	}
	return append(dst, '}')
}

// AppendJSON writes the report: LaneExecutionInfo, then config, queues, pending
// writes and the snapshot.
func (r LaneReport) AppendJSON(dst []byte) ([]byte, error) {
	dst = r.ExecutionInfo.appendFields(append(dst, '{'))
	dst = append(dst, `,"config":`...)
	if r.Config == nil {
		dst = append(dst, "null"...)
	} else {
		dst = appendConfig(dst, *r.Config)
	}
	dst = r.appendQueues(dst)
	if r.Snapshot != nil {
		dst = append(dst, `,"snapshot":`...)
		dst = r.Snapshot.append(dst)
	}
	return append(dst, '}'), nil
}

// MarshalJSON is AppendJSON.
func (r LaneReport) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil) }

func appendConfig(dst []byte, c store.LaneConfiguration) []byte {
	dst = append(append(dst, `{"model":`...), modelJSON(c.Model)...)
	dst = append(dst, `,"thinkingLevel":`...)
	dst = rawjson.AppendQuote(dst, string(c.ThinkingLevel))
	dst = append(append(dst, `,"activeToolNames":`...), namesJSON(c.ActiveToolNames)...)
	return append(dst, '}')
}

func (r LaneReport) appendQueues(dst []byte) []byte {
	dst = append(dst, `,"queues":{"steer":`...)
	dst = appendQueue(dst, r.Queues.Steer)
	dst = append(dst, `,"followUp":`...)
	dst = appendQueue(dst, r.Queues.FollowUp)
	dst = append(dst, `,"nextRun":`...)
	dst = appendQueue(dst, r.Queues.NextRun)
	dst = append(dst, `},"pendingWrites":[`...)
	for i, w := range r.PendingWrites {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = w.append(dst)
	}
	return append(dst, ']')
}

func appendQueue(dst []byte, items []QueuedItem) []byte {
	dst = append(dst, '[')
	for i, item := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"entryId":`...)
		dst = rawjson.AppendQuote(dst, item.EntryID)
		dst = append(append(dst, `,"message":`...), item.Message...)
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

func (w PendingWrite) append(dst []byte) []byte {
	dst = append(dst, `{"entryId":`...)
	dst = rawjson.AppendQuote(dst, w.EntryID)
	dst = append(dst, `,"type":`...)
	dst = rawjson.AppendQuote(dst, string(w.Content.Type))
	field := `,"message":`
	if w.Content.Type == store.TypeCustom {
		dst = append(dst, `,"customType":`...)
		dst = rawjson.AppendQuote(dst, w.Content.CustomType)
		field = `,"data":`
	}
	if w.Content.Payload != nil {
		dst = append(append(dst, field...), w.Content.Payload...)
	}
	return append(dst, '}')
}

// AppendJSON writes the LaneSnapshot of §5.4.
func (s *LaneSnapshot) AppendJSON(dst []byte) ([]byte, error) { return s.append(dst), nil }

func (s *LaneSnapshot) append(dst []byte) []byte {
	dst = append(dst, `{"lane":`...)
	dst = rawjson.AppendQuote(dst, s.Report.Lane)
	dst = append(dst, `,"transcript":[`...)
	for i, e := range s.Transcript {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst, _ = e.AppendJSON(dst)
	}
	dst = append(dst, `],"leafId":`...)
	dst, _ = s.Report.LeafID.AppendJSON(dst)
	dst = append(dst, `,"operation":`...)
	if s.Report.Current == nil {
		dst = append(dst, "null"...)
	} else {
		dst = s.appendOperation(dst)
	}
	dst = s.Report.appendQueues(dst)
	dst = append(dst, `,"faulted":`...)
	if s.Faulted {
		return append(dst, "true}"...)
	}
	return append(dst, "false}"...)
}

func (s *LaneSnapshot) appendOperation(dst []byte) []byte {
	dst = s.Report.Current.append(dst)
	dst = dst[:len(dst)-1]
	if s.Streaming != nil {
		dst = append(append(dst, `,"streamingMessage":`...), s.Streaming...)
	}
	dst = append(dst, `,"runningTools":[`...)
	for i, r := range s.Running {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = r.append(dst)
	}
	dst = append(dst, ']')
	if s.Retry != nil {
		dst = append(dst, `,"retry":{"attempt":`...)
		dst = rawjson.AppendInt(dst, s.Retry.Attempt)
		dst = append(dst, `,"maxAttempts":`...)
		dst = rawjson.AppendInt(dst, s.Retry.MaxAttempts)
		dst = append(dst, `,"nextAttemptAt":`...)
		dst = append(rawjson.AppendInt(dst, s.Retry.NextAttemptAt), '}')
	}
	return append(dst, '}')
}
