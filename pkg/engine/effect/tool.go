package effect

import (
	"context"
	"encoding/json"

	"github.com/drover-run/drover/pkg/message"
)

// Tool is something a model may call (spec §5.7).
type Tool interface {
	Spec() message.ToolSpec
	// ReplaySafe declares that an interrupted call may run again with the same
	// arguments; without it a call runs at most once.
	ReplaySafe() bool
	// Prepare completes and validates arguments. It is deterministic and may
	// repeat; its error becomes a tool error that the model sees.
	Prepare(args json.RawMessage) (json.RawMessage, error)
	// Execute runs the call. An error becomes an error result. A cancelled context
	// asks it to stop and to return what it has.
	Execute(ctx context.Context, call Invocation) (message.ToolResult, error)
}

// Starter is a tool that has to be made ready before a request can offer it, such as
// one of a server. Its Spec and ReplaySafe say what they should once it was started;
// Prepare and Execute do without, as well as they can (D47).
type Starter interface {
	Tool
	// Start makes the tool ready; of one that is, it does nothing. It ends soon
	// after its context.
	Start(ctx context.Context) error
}

// Invocation is one call of a tool. ID is its session-unique logical identity,
// stable across replays.
type Invocation struct {
	ID          string
	SessionID   string
	Lane        string
	OperationID string
	TurnID      string
	CallID      string // the provider's, not unique
	Args        json.RawMessage
	// Update reports progress; with checkpoint it also replaces the invocation's
	// durable, bounded snapshot. It never blocks and is void once Execute returned.
	Update func(partial message.ToolResult, checkpoint bool)
	Memos  Memos
}

// Memos are an invocation's durable values: they survive a replay and die with
// the call (spec §3.8). Writes must be awaited.
type Memos interface {
	Get(ctx context.Context, name string) (json.RawMessage, bool, error)
	// Set stores a value; nil deletes it. A name is not empty and has no colon.
	Set(ctx context.Context, name string, value json.RawMessage) error
}

// DeferredModel is a model that can answer later (spec §3.2). Poll starts one
// question about a handle, Cancel asks the provider to drop the job.
type DeferredModel interface {
	Model
	Poll(ctx context.Context, handle message.DeferredHandle, req Request) Events
	Cancel(ctx context.Context, handle message.DeferredHandle) error
}

// Adopter is a DeferredModel whose lost submissions can be found again (D34).
type Adopter interface {
	DeferredModel
	// Adopt looks, with one question, for a job of one of the submissions. now is
	// Unix ms.
	Adopt(ctx context.Context, now int64, lost []Submission) Adoption
}

// Submission is a request for a deferred answer that may have reached its provider.
type Submission struct {
	ResponseEntryID string // the key that it carries
	ReservedAt      int64  // the id, Unix ms
}

// Adoption is what is known of lost submissions. The zero value says that there is no
// job of theirs, or that the question got no answer.
type Adoption struct {
	// Handle is of the job that carries the key of one of them.
	Handle message.DeferredHandle
	// Unsure says that there are jobs that may be theirs and do not tell their keys
	// yet: whoever submits again now may do it twice.
	Unsure bool
}
