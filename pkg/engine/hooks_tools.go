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
			out, ok, err := runHook(ctx, p, "before_tool", hook, in)
			if err != nil {
				return out, err
			}
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

// afterTool patches a finished result, field by field. Once a required handler
// fails nobody sees the result (D48).
func (p *pass) afterTool(call message.Block, args []byte, r message.ToolResult) (message.ToolResult, error) {
	hooks := p.lane.h.opts.Hooks.AfterTool
	return admitHook(p, "after_tool", hooks, r, func(ctx context.Context) (message.ToolResult, error) {
		current := r
		for _, hook := range hooks {
			patch, ok, err := runHook(ctx, p, "after_tool", hook, AfterTool{p.lane.name, p.operationID, call.ID, call.Name, args, current})
			if err != nil {
				return withheld(r, "a required after_tool hook failed"), nil
			}
			if ok {
				current = patched(current, patch)
			}
		}
		return current, nil
	})
}

// guarded reports a tool whose results a required after_tool handler must see
// before anybody else.
func (p *pass) guarded(tool string) bool {
	guarded := p.lane.h.opts.Hooks.Guarded
	return guarded != nil && guarded(tool)
}

// withheld stands in for a result that must not be seen; what it cost stays.
func withheld(r message.ToolResult, why string) message.ToolResult {
	stand := *synthetic("withheld", "the result of this call is withheld: "+why)
	stand.Usage = r.Usage
	return stand
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
			out, ok, err := runHook(ctx, p, name, hook, in)
			switch {
			case err != nil:
				return out, err
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
