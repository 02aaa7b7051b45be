package engine

import (
	"fmt"
	"strings"

	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// LaneBusy refuses an operation on a lane that runs another (spec §3.6).
type LaneBusy struct {
	Lane        string
	OperationID string
	Kind        op.Kind
}

func (e *LaneBusy) Error() string {
	return fmt.Sprintf("lane %s is busy with %s %s", e.Lane, e.Kind, e.OperationID)
}

// Tag is the refusal's stable name (spec §5.1).
func (e *LaneBusy) Tag() string { return "LaneBusy" }

// OperationMismatch refuses work for an operation that is neither current nor
// the latest terminal one (spec §4.1).
type OperationMismatch struct {
	Lane     string
	Expected string
	Current  string // "" when the lane is idle
	Last     string // the latest to end, "" when none has
}

func (e *OperationMismatch) Error() string {
	if e.Current == "" {
		return fmt.Sprintf("operation %s is not open on lane %s, which is idle", e.Expected, e.Lane)
	}
	return fmt.Sprintf("operation %s is not open on lane %s, which runs %s", e.Expected, e.Lane, e.Current)
}

// Tag is the refusal's stable name (spec §5.1).
func (e *OperationMismatch) Tag() string { return "OperationMismatch" }

// MissingIdentities refuses a run whose model or tools are not registered (spec
// §4.4).
type MissingIdentities struct {
	Lane    string
	Missing op.Missing
	Err     error // why the model does not resolve, or tools do not start
	// Nearest are registered tools that a missing one may have been meant to be, by
	// its name.
	Nearest map[string][]string
}

// LackTool adds a tool that is not registered.
func (e *MissingIdentities) LackTool(name string, registered ToolRegistry) {
	e.Missing.Tools = append(e.Missing.Tools, name)
	knows, ok := registered.(interface{ Nearest(name string) []string })
	if !ok {
		return
	}
	if near := knows.Nearest(name); len(near) > 0 {
		if e.Nearest == nil {
			e.Nearest = map[string][]string{}
		}
		e.Nearest[name] = near
	}
}

func (e *MissingIdentities) Error() string {
	if e.Err != nil && e.Missing.Model == "" {
		return e.Err.Error() // of tools that are registered
	}
	var parts []string
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	} else if e.Missing.Model != "" {
		parts = append(parts, "model "+e.Missing.Model+" is not registered")
	}
	if len(e.Missing.Tools) > 0 {
		parts = append(parts, "tools not registered: "+strings.Join(e.tools(), ", "))
	}
	return strings.Join(parts, "; ")
}

func (e *MissingIdentities) tools() []string {
	var told []string
	for _, name := range e.Missing.Tools {
		if near := e.Nearest[name]; near != nil {
			name += " (nearest: " + strings.Join(near, ", ") + ")"
		}
		told = append(told, name)
	}
	return told
}

// Unwrap returns why the model does not resolve, or tools do not start.
func (e *MissingIdentities) Unwrap() error { return e.Err }

// Tag is the refusal's stable name (spec §5.1).
func (e *MissingIdentities) Tag() string { return "MissingIdentities" }

// InvalidMessage refuses a prompt that cannot be placed (spec §3.6).
type InvalidMessage struct {
	Lane   string // "" before it is known
	Reason string
}

func (e *InvalidMessage) Error() string { return "invalid message: " + e.Reason }

// Tag is the refusal's stable name (spec §5.1).
func (e *InvalidMessage) Tag() string { return "InvalidMessage" }

// NothingToResume is the answer of a lane without an open operation (spec §5.1).
type NothingToResume struct{ Lane string }

func (e *NothingToResume) Error() string {
	return fmt.Sprintf("lane %s has no open operation", e.Lane)
}

// Tag is the refusal's stable name (spec §5.1).
func (e *NothingToResume) Tag() string { return "NothingToResume" }

// LaneNotFound names a lane that the session does not have.
type LaneNotFound struct {
	Lane  string
	Known []string
}

func (e *LaneNotFound) Error() string {
	return fmt.Sprintf("lane %q does not exist; lanes: %s", e.Lane, strings.Join(e.Known, ", "))
}

// Tag is the refusal's stable name.
func (e *LaneNotFound) Tag() string { return "LaneNotFound" }

// Unwrap makes it a store.ErrNotFound.
func (e *LaneNotFound) Unwrap() error { return store.ErrNotFound }

// NoActiveRun refuses to queue for a run where none is open, or where it is being
// cancelled (spec §3.11).
type NoActiveRun struct{ Lane string }

func (e *NoActiveRun) Error() string { return fmt.Sprintf("lane %s has no active run", e.Lane) }

// Tag is the refusal's stable name (spec §5.1).
func (e *NoActiveRun) Tag() string { return "NoActiveRun" }

// NoActiveOperation refuses to abort where nothing is open (spec §5.1).
type NoActiveOperation struct{ Lane string }

func (e *NoActiveOperation) Error() string {
	return fmt.Sprintf("lane %s has no open operation to abort", e.Lane)
}

// Tag is the refusal's stable name (spec §5.1).
func (e *NoActiveOperation) Tag() string { return "NoActiveOperation" }

// NothingToCompact refuses a compaction without a non-empty preparation (spec
// §3.6).
type NothingToCompact struct{ Lane string }

func (e *NothingToCompact) Error() string {
	return fmt.Sprintf("lane %s has nothing to compact", e.Lane)
}

// Tag is the refusal's stable name (spec §5.1).
func (e *NothingToCompact) Tag() string { return "NothingToCompact" }

// InvalidNavigation refuses a navigation that makes no sense: to the leaf itself,
// a label on the root, a summary from or to the root, nothing to summarize.
type InvalidNavigation struct{ Lane, Reason string }

func (e *InvalidNavigation) Error() string { return "invalid navigation: " + e.Reason }

// Tag is the refusal's stable name (spec §5.1).
func (e *InvalidNavigation) Tag() string { return "InvalidNavigation" }

// Required is the failure of a handler without which what it guards must not
// happen (D48). Of after_tool it withholds the result; of transform_context,
// before_request and before_payload it fails the attempt, and leaves a polled job
// as it is; of any other hook it rejects the pass, as every failure of before_drive
// does.
type Required struct{ Err error }

func (e *Required) Error() string { return e.Err.Error() }

// Unwrap returns the failure.
func (e *Required) Unwrap() error { return e.Err }

// HookFailed rejects a drive pass, without durable progress: the operation stays
// open as it stands (spec §5.6, D48).
type HookFailed struct {
	Lane        string
	OperationID string
	Hook        string // its name in §5.6
	Err         error
}

func (e *HookFailed) Error() string { return fmt.Sprintf("%s hook: %v", e.Hook, e.Err) }

// Unwrap returns the failure.
func (e *HookFailed) Unwrap() error { return e.Err }

// Tag is the refusal's stable name.
func (e *HookFailed) Tag() string { return "HookFailed" }

// Defect is a broken invariant: a required value that is missing, an impossible
// state, a procedure that made no progress (spec §3.3, §4.1).
type Defect struct {
	Lane string
	Err  error
}

func (e *Defect) Error() string { return fmt.Sprintf("lane %s: invariant defect: %v", e.Lane, e.Err) }

// Unwrap returns the cause.
func (e *Defect) Unwrap() error { return e.Err }
