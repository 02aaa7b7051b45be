package op

import (
	"encoding/json"
	"fmt"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Meta is an operation's acceptance data (spec §1.3).
func Meta(operationID string) store.Value[Operation] {
	return store.NewValue[Operation]("pi.op.meta", operationID)
}

// StateOf is an operation's restart point.
func StateOf(operationID string) store.Value[State] {
	return store.NewValue[State]("pi.op.state", operationID).DecodedBy(DecodeState)
}

// LastResult is a lane's latest terminal outcome; recovery never reads it.
func LastResult(lane string) store.Value[LaneLastResult] {
	return store.NewValue[LaneLastResult]("pi.lane.lastResult", lane)
}

// ToolArgsOf are the effective arguments of one call, written at its clearance.
func ToolArgsOf(operationID, stepID string, sourceIndex int) store.Value[json.RawMessage] {
	return store.NewValue[json.RawMessage]("pi.op.tool_args", fmt.Sprintf("%s:%s:%d", operationID, stepID, sourceIndex))
}

// ToolArgs scans the effective arguments that an operation wrote.
func ToolArgs(operationID string) store.Prefix[json.RawMessage] {
	return store.NewPrefix[json.RawMessage]("pi.op.tool_args", operationID+":")
}

// StepToolArgs scans the effective arguments of one batch.
func StepToolArgs(operationID, stepID string) store.Prefix[json.RawMessage] {
	return store.NewPrefix[json.RawMessage]("pi.op.tool_args", operationID+":"+stepID+":")
}

// ToolMemo is one durable memo of an invocation.
func ToolMemo(operationID, invocationID, name string) store.Value[json.RawMessage] {
	return store.NewValue[json.RawMessage]("pi.op.tool_memo", operationID+":"+invocationID+":"+name)
}

// ToolMemos scans the invocation memos of an operation.
func ToolMemos(operationID string) store.Prefix[json.RawMessage] {
	return store.NewPrefix[json.RawMessage]("pi.op.tool_memo", operationID+":")
}

// InvocationMemos scans the memos of one invocation.
func InvocationMemos(operationID, invocationID string) store.Prefix[json.RawMessage] {
	return store.NewPrefix[json.RawMessage]("pi.op.tool_memo", operationID+":"+invocationID+":")
}

// PreparationOf is the structural preparation of one task, written once.
func PreparationOf(operationID, taskID string) store.Value[json.RawMessage] {
	return store.NewValue[json.RawMessage]("pi.op.preparation", operationID+":"+taskID)
}

// ToolOutput is the latest progress checkpoint of one invocation.
func ToolOutput(operationID, invocationID string) store.Value[json.RawMessage] {
	return store.NewValue[json.RawMessage]("pi.pending.tool_output", operationID+":"+invocationID)
}

// Preparations scans the structural preparations of an operation.
func Preparations(operationID string) store.Prefix[json.RawMessage] {
	return store.NewPrefix[json.RawMessage]("pi.op.preparation", operationID+":")
}

// ToolOutputs scans the progress checkpoints of an operation.
func ToolOutputs(operationID string) store.Prefix[json.RawMessage] {
	return store.NewPrefix[json.RawMessage]("pi.pending.tool_output", operationID+":")
}

// Frames is the committed stream prefix of one response (spec §3.7).
func Frames(operationID, responseEntryID string) store.List[message.Frame] {
	return store.NewList[message.Frame]("pi.pending.assistant_frame", operationID+":"+responseEntryID)
}

// Owned names every value that an operation may own beyond its meta and state,
// for its terminal transaction to delete (spec §3.13).
func Owned(operationID string) []store.Address {
	return []store.Address{
		ToolArgs(operationID).Address(),
		ToolMemos(operationID).Address(),
		Preparations(operationID).Address(),
		ToolOutputs(operationID).Address(),
	}
}

// Invalid is a state or an input that no legal history produces: a defect of
// ours or of a provider, never of a user (spec §3.4, §9.1).
type Invalid struct{ Msg string }

func (e *Invalid) Error() string { return e.Msg }

func invalid(format string, args ...any) error { return &Invalid{Msg: fmt.Sprintf(format, args...)} }
