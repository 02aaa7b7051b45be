package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/telemetry"
)

// Hook is one handler of an interception point: E is what it sees, R what it
// answers (spec §5.6). Handlers run in registration order; one that fails is
// reported and skipped, except where a hook says otherwise or the error is a
// *Required. The context ends with a close and with an abort; after an abort a
// handler that runs may still come to its end, and is heeded (spec §4.6).
type Hook[E, R any] = func(context.Context, E) (R, error)

// Hooks are the eleven interception points of §5.6.
type Hooks struct {
	// BeforeDrive runs once per installed pass; its error rejects the pass.
	BeforeDrive []func(context.Context, BeforeDrive) error
	// BeforeRun runs while a run is starting; what it returns is placed with the
	// transition that consumes it.
	BeforeRun []Hook[BeforeRun, []message.Message]
	// BeforeRunEnd may give the run a follow-up instead of its end.
	BeforeRunEnd []Hook[BeforeRunEnd, string]
	// TransformContext changes what one request sends; nil fields keep it.
	TransformContext []Hook[RequestContext, RequestContext]
	// BeforeRequest patches the stream options of one attempt.
	BeforeRequest []Hook[BeforeRequest, *message.StreamOptions]
	// BeforePayload replaces the provider's own request body; nil keeps it.
	BeforePayload []Hook[BeforePayload, json.RawMessage]
	// AfterResponse may replace a settled response; nil keeps it.
	AfterResponse []Hook[AfterResponse, message.Message]
	// BeforeTool may change arguments or block the call; its error blocks it.
	BeforeTool []Hook[BeforeTool, ToolDecision]
	// AfterTool patches a finished result field by field.
	AfterTool []Hook[AfterTool, ToolPatch]
	// Guarded tells the tools whose results a required after_tool handler must see
	// first: of a running call nothing is told or stored (D48). nil is none.
	Guarded func(tool string) bool
	// BeforeCompaction and BeforeNavigation decide about a summary.
	BeforeCompaction []Hook[BeforeSummary, SummaryDecision]
	BeforeNavigation []Hook[BeforeSummary, SummaryDecision]
}

// BeforeDrive is what the before_drive hook sees.
type BeforeDrive struct {
	Lane, RunID string
	Operation   op.Kind
}

// BeforeRun is what the before_run hook sees: the prompt plus what earlier
// handlers injected.
type BeforeRun struct {
	Lane, RunID string
	Prompt      []message.Message
}

// BeforeRunEnd is what the before_run_end hook sees: the run's context.
type BeforeRunEnd struct {
	Lane, RunID string
	Messages    []message.Message
}

// RequestContext is the context of one request, before it is made ready for a
// provider.
type RequestContext struct {
	Lane, RunID  string
	Messages     []message.Message
	SystemPrompt *string
}

// BeforeRequest is what the before_request hook sees; Step is assistant,
// deferred, compaction or branch_summary.
type BeforeRequest struct {
	Lane, RunID string
	Model       effect.ModelInfo
	Step        string
	Attempt     int64
	Options     message.StreamOptions
}

// BeforePayload is what the before_payload hook sees.
type BeforePayload struct {
	Lane, RunID string
	Model       effect.ModelInfo
	Payload     json.RawMessage
}

// AfterResponse is what the after_response hook sees.
type AfterResponse struct {
	Lane, RunID string
	Metadata    message.ResponseMetadata
	Message     message.Message
}

// BeforeTool is what the before_tool hook sees.
type BeforeTool struct {
	Lane, RunID      string
	ToolCallID, Name string
	Args             json.RawMessage
}

// ToolDecision answers before_tool: replaced arguments, or a block.
type ToolDecision struct {
	Args      json.RawMessage // nil keeps them
	Block     string          // "" lets the call run
	Terminate bool            // with Block
}

// AfterTool is what the after_tool hook sees.
type AfterTool struct {
	Lane, RunID      string
	ToolCallID, Name string
	Args             json.RawMessage
	Result           message.ToolResult
}

// ToolPatch answers after_tool; nil fields keep what is there.
type ToolPatch struct {
	Content   []message.Block
	Details   json.RawMessage
	IsError   *bool
	Usage     *message.Usage
	Terminate *bool
}

// BeforeSummary is what before_compaction and before_navigation see.
type BeforeSummary struct {
	Lane, RunID        string
	Reason             op.CompactionReason // compaction
	TargetID           store.LeafID        // navigation
	Preparation        op.Preparation
	CustomInstructions string
}

// SummaryDecision answers them: decline, a finished summary, or neither, which
// selects generation. Both at once is a handler error.
type SummaryDecision struct {
	Decline bool
	Summary *SuppliedSummary
}

// SuppliedSummary is a summary that a hook made.
type SuppliedSummary struct {
	Text    string
	Details json.RawMessage
	Usage   *message.Usage
}

// runHook runs one handler and reports its failure; false skips its answer. The
// error is a *HookFailed: the failure of a handler that is required.
func runHook[E, R any](ctx context.Context, p *pass, name string, hook Hook[E, R], in E) (R, bool, error) {
	out, err := hook(ctx, in)
	if err == nil {
		return out, true, nil
	}
	p.handlerError(ctx, name, err)
	return out, false, p.required(name, err)
}

// required makes the failure of a required handler what its caller must heed, nil
// of any other (D48).
func (p *pass) required(hook string, err error) error {
	if r, ok := errors.AsType[*Required](err); ok {
		return p.hookFailed(hook, r.Err)
	}
	return nil
}

func (p *pass) hookFailed(hook string, err error) error {
	return &HookFailed{Lane: p.lane.name, OperationID: p.operationID, Hook: hook, Err: err}
}

func (p *pass) handlerError(ctx context.Context, hook string, err error) {
	p.lane.h.events.emit(ctx, op.Event{
		Type: op.EventHandlerError, Lane: p.lane.name, RunID: p.operationID, Hook: hook, ErrorText: err.Error(),
	})
}

// admitHook is one aggregate: a breakpoint, the admission, then the whole
// pipeline (spec §4.2, §5.6). Without handlers it costs nothing.
func admitHook[H, R any](p *pass, name string, handlers []H, zero R, run func(context.Context) (R, error)) (R, error) {
	if len(handlers) == 0 {
		return zero, nil
	}
	if err := p.hit("hook."+name, "Run the "+name+" hooks", ""); err != nil {
		return zero, err
	}
	span := p.spans.Start(telemetry.SpanHook, telemetry.String("pi.hook", name))
	out, err := effect.Admit(p.gate, run)
	if closed := p.gate.Closed(); closed != nil {
		err = closed // a close may have cut the handlers short (spec §4.7)
	} else if _, failed := errors.AsType[*HookFailed](err); failed {
		err = cmp.Or(p.gate.Check(), err) // what a hook guards does not come after an abort
	}
	span.End(err)
	if err != nil {
		return zero, err
	}
	return out, nil
}

// beforeDrive runs once per installed pass; a failure rejects the pass and leaves
// no trace.
func (p *pass) beforeDrive(t op.Turn) error {
	hooks := p.lane.h.opts.Hooks.BeforeDrive
	_, err := admitHook(p, "before_drive", hooks, struct{}{}, func(ctx context.Context) (struct{}, error) {
		for _, hook := range hooks {
			in := BeforeDrive{Lane: p.lane.name, RunID: p.operationID, Operation: t.Operation.Intent.Kind}
			if err := hook(ctx, in); err != nil {
				return struct{}{}, p.hookFailed("before_drive", err)
			}
		}
		return struct{}{}, nil
	})
	return err
}

// beforeRun collects what the handlers inject; what is no message counts as a
// failure of its handler.
func (p *pass) beforeRun(prompt []message.Message) ([]message.Message, error) {
	hooks := p.lane.h.opts.Hooks.BeforeRun
	return admitHook(p, "before_run", hooks, nil, func(ctx context.Context) ([]message.Message, error) {
		var injected []message.Message
		for _, hook := range hooks {
			seen := append(append([]message.Message(nil), prompt...), injected...)
			messages, ok, err := runHook(ctx, p, "before_run", hook, BeforeRun{p.lane.name, p.operationID, seen})
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			normal, err := normalizeAll(messages, p.lane.h.opts.Now())
			if err != nil {
				p.handlerError(ctx, "before_run", err)
				continue
			}
			injected = append(injected, normal...)
		}
		return injected, nil
	})
}

func normalizeAll(messages []message.Message, now int64) ([]message.Message, error) {
	normal := make([]message.Message, len(messages))
	for i, m := range messages {
		var err error
		if normal[i], err = message.Normalize(m, now); err != nil {
			return nil, err
		}
	}
	return normal, nil
}

// beforeRunEnd asks for a follow-up; the last handler that gives one wins.
func (p *pass) beforeRunEnd(messages func() ([]message.Message, error)) (string, error) {
	hooks := p.lane.h.opts.Hooks.BeforeRunEnd
	return admitHook(p, "before_run_end", hooks, "", func(ctx context.Context) (string, error) {
		seen, err := messages()
		if err != nil {
			return "", err
		}
		followUp := ""
		for _, hook := range hooks {
			text, ok, err := runHook(ctx, p, "before_run_end", hook, BeforeRunEnd{p.lane.name, p.operationID, seen})
			if err != nil {
				return "", err
			}
			if ok && text != "" {
				followUp = text
			}
		}
		return followUp, nil
	})
}

// transformContext lets handlers change what one request sends.
func (p *pass) transformContext(messages []message.Message, system string) ([]message.Message, string, error) {
	hooks := p.lane.h.opts.Hooks.TransformContext
	in := RequestContext{Lane: p.lane.name, RunID: p.operationID, Messages: messages, SystemPrompt: &system}
	out, err := admitHook(p, "transform_context", hooks, in, func(ctx context.Context) (RequestContext, error) {
		current := in
		for _, hook := range hooks {
			next, ok, err := runHook(ctx, p, "transform_context", hook, current)
			if err != nil {
				return current, err
			}
			if ok && next.Messages != nil {
				current.Messages = next.Messages
			}
			if ok && next.SystemPrompt != nil {
				current.SystemPrompt = next.SystemPrompt
			}
		}
		return current, nil
	})
	if err != nil {
		return nil, "", err
	}
	return out.Messages, *out.SystemPrompt, nil
}

// beforeRequest patches the stream options of one attempt, field by field.
func (p *pass) beforeRequest(model effect.ModelInfo, step string, attempt int64, base message.StreamOptions) (message.StreamOptions, error) {
	hooks := p.lane.h.opts.Hooks.BeforeRequest
	return admitHook(p, "before_request", hooks, base, func(ctx context.Context) (message.StreamOptions, error) {
		current := base
		for _, hook := range hooks {
			patch, ok, err := runHook(ctx, p, "before_request", hook, BeforeRequest{p.lane.name, p.operationID, model, step, attempt, current})
			if err != nil {
				return current, err
			}
			if ok && patch != nil {
				current = merge(current, *patch)
			}
		}
		return current, nil
	})
}

func merge(base, patch message.StreamOptions) message.StreamOptions {
	if patch.MaxTokens != nil {
		base.MaxTokens = patch.MaxTokens
	}
	if patch.Temperature != nil {
		base.Temperature = patch.Temperature
	}
	if patch.Deferred != nil {
		base.Deferred = patch.Deferred
	}
	return base
}

// beforePayload replaces the request body that a provider is about to send.
func (p *pass) beforePayload(model effect.ModelInfo, body json.RawMessage) (json.RawMessage, error) {
	hooks := p.lane.h.opts.Hooks.BeforePayload
	return admitHook(p, "before_payload", hooks, body, func(ctx context.Context) (json.RawMessage, error) {
		current := body
		for _, hook := range hooks {
			next, ok, err := runHook(ctx, p, "before_payload", hook, BeforePayload{p.lane.name, p.operationID, model, current})
			if err != nil {
				return nil, err
			}
			if ok && next != nil {
				current = next
			}
		}
		return current, nil
	})
}

// afterResponse may replace a settled response; the replacement must be an
// assistant message.
func (p *pass) afterResponse(m message.Message, meta message.ResponseMetadata) (message.Message, error) {
	hooks := p.lane.h.opts.Hooks.AfterResponse
	return admitHook(p, "after_response", hooks, m, func(ctx context.Context) (message.Message, error) {
		current := m
		for _, hook := range hooks {
			next, ok, err := runHook(ctx, p, "after_response", hook, AfterResponse{p.lane.name, p.operationID, meta, current})
			switch {
			case err != nil:
				return nil, err
			case !ok || next == nil:
			case next.Role() != message.RoleAssistant || message.Validate(next) != nil:
				p.handlerError(ctx, "after_response", fmt.Errorf("the replacement is no settled assistant message"))
			default:
				current = next
			}
		}
		return current, nil
	})
}
