package engine

import (
	"context"
	"errors"

	"github.com/drover-run/drover/pkg/message"
)

// beforeTool lets handlers change the arguments or block the call; the first
// block is final, a handler that fails blocks too (spec §5.6).
func (p *pass) beforeTool(call message.Block, args []byte) (ToolDecision, error) {
	hooks := p.lane.h.opts.Hooks.BeforeTool
	return admitHook(p, "before_tool", hooks, ToolDecision{Args: args}, func(ctx context.Context) (ToolDecision, error) {
		current := ToolDecision{Args: args}
		for _, hook := range hooks {
			in := BeforeTool{p.lane.name, p.operationID, call.ID, call.Name, current.Args}
			out, ok := runHook(ctx, p, "before_tool", hook, in)
			if !ok {
				return ToolDecision{Block: "a before_tool hook failed"}, nil
			}
			if out.Block != "" {
				return out, nil
			}
			if out.Args != nil {
				current.Args = out.Args
			}
		}
		return current, nil
	})
}

// afterTool patches a finished result, field by field.
func (p *pass) afterTool(call message.Block, args []byte, r message.ToolResult) (message.ToolResult, error) {
	hooks := p.lane.h.opts.Hooks.AfterTool
	return admitHook(p, "after_tool", hooks, r, func(ctx context.Context) (message.ToolResult, error) {
		current := r
		for _, hook := range hooks {
			patch, ok := runHook(ctx, p, "after_tool", hook, AfterTool{p.lane.name, p.operationID, call.ID, call.Name, args, current})
			if ok {
				current = patched(current, patch)
			}
		}
		return current, nil
	})
}

func patched(r message.ToolResult, patch ToolPatch) message.ToolResult {
	if patch.Content != nil {
		r.Content = patch.Content
	}
	if patch.Details != nil {
		r.Details = patch.Details
	}
	if patch.IsError != nil {
		r.IsError = *patch.IsError
	}
	if patch.Usage != nil {
		r.Usage = patch.Usage
	}
	if patch.Terminate != nil {
		r.Terminate = *patch.Terminate
	}
	return r
}

// decide asks the handlers of a summary; the first decline or result ends it
// (spec §5.6).
func (p *pass) decide(name string, hooks []Hook[BeforeSummary, SummaryDecision], in BeforeSummary) (SummaryDecision, error) {
	return admitHook(p, name, hooks, SummaryDecision{}, func(ctx context.Context) (SummaryDecision, error) {
		for _, hook := range hooks {
			out, ok := runHook(ctx, p, name, hook, in)
			switch {
			case !ok:
			case out.Decline && out.Summary != nil:
				p.handlerError(ctx, name, errors.New("the hook declined and supplied a summary at once"))
			case out.Decline || out.Summary != nil:
				return out, nil
			}
		}
		return SummaryDecision{}, nil
	})
}
