package effect

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/drover-run/drover/pkg/message"
)

// Models resolves durable model identities to models that can run (spec §0.7).
type Models interface {
	// Resolve returns the model of a reference. One that is not registered, or
	// whose resources are absent, is an *UnknownModel; any other error is an
	// input/output failure.
	Resolve(ref message.ModelRef) (Model, error)
}

// Events is one response as it arrives.
type Events = iter.Seq[message.StreamEvent]

// Model is one model that answers requests.
type Model interface {
	Info() ModelInfo
	// Stream starts one request and returns without waiting for its first event.
	// The sequence is consumed once, on the caller's goroutine; it ends after
	// exactly one done or error event. A cancelled context ends it soon, with an
	// error event whose reason is aborted.
	Stream(ctx context.Context, req Request) Events
}

// ModelInfo is what the engine needs to know of a model. Token counts are
// tokens.
type ModelInfo struct {
	Ref           message.ModelRef
	API           string
	ContextWindow int64
	MaxTokens     int64
	// Thinking lists the supported levels besides off.
	Thinking []message.ThinkingLevel
	// Images tells whether the model takes images. A request leaves them out for
	// one that does not.
	Images bool
}

// Request is one provider request, ready to send.
type Request struct {
	// ResponseEntryID is the reserved id of the answer (spec §3.7).
	ResponseEntryID string
	SystemPrompt    string
	Messages        []message.Message // provider-ready: user, assistant, toolResult
	Tools           []message.ToolSpec
	// Thinking is what the model supports of Wanted, the level that is set.
	Thinking message.ThinkingLevel
	Wanted   message.ThinkingLevel
	// OmittedImages counts the images of Messages that the model cannot take.
	OmittedImages int64
	Options       message.StreamOptions
	// MaxOutput is the intended output limit in tokens (D36).
	MaxOutput int64
	Now       int64 // Unix ms, the answer's timestamp
	// Payload lets hooks see and replace the provider's own request body; nil
	// leaves it alone. After an error the provider sends nothing and ends the stream
	// with an error of its own.
	Payload func(ctx context.Context, body json.RawMessage) (json.RawMessage, error)
	// OnResponse takes the status and headers of the response before its body.
	OnResponse func(message.ResponseMetadata)
}

// UnknownModel is a reference that names no usable model.
type UnknownModel struct {
	Ref     message.ModelRef
	Reason  string   // why, when more is known than "not registered"
	Nearest []string // similar names that would resolve
	Cure    string   // what a person can do about the reason, where that is known
	// Unusable says that the reason is the provider's, such as a missing key: its
	// other models would not resolve either, and the name may well be right.
	Unusable bool
}

func (e *UnknownModel) Error() string {
	msg := fmt.Sprintf("model %s is not registered", e.Ref)
	if e.Reason != "" {
		msg = fmt.Sprintf("model %s: %s", e.Ref, e.Reason)
	}
	if len(e.Nearest) > 0 {
		msg += "; nearest: " + strings.Join(e.Nearest, ", ")
	}
	return msg
}
