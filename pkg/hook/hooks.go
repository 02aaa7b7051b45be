package hook

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/message"
)

// Hooks makes handlers of programs; those of one point run in the order that they
// are given in.
func Hooks(programs []Program, o Options) engine.Hooks {
	var h engine.Hooks
	for _, p := range programs {
		runner{p, o}.register(&h)
	}
	h.Guarded = func(tool string) bool {
		for _, p := range programs {
			if p.Point == AfterTool && p.Required && p.wants(tool) {
				return true
			}
		}
		return false
	}
	return h
}

func (r runner) register(h *engine.Hooks) {
	switch r.Point {
	case BeforeDrive:
		h.BeforeDrive = append(h.BeforeDrive, r.beforeDrive)
	case BeforeRun:
		h.BeforeRun = append(h.BeforeRun, r.beforeRun)
	case BeforeRunEnd:
		h.BeforeRunEnd = append(h.BeforeRunEnd, r.beforeRunEnd)
	case TransformContext:
		h.TransformContext = append(h.TransformContext, r.transformContext)
	case BeforeRequest:
		h.BeforeRequest = append(h.BeforeRequest, r.beforeRequest)
	case BeforePayload:
		h.BeforePayload = append(h.BeforePayload, r.beforePayload)
	case AfterResponse:
		h.AfterResponse = append(h.AfterResponse, r.afterResponse)
	case BeforeTool:
		h.BeforeTool = append(h.BeforeTool, r.beforeTool)
	case AfterTool:
		h.AfterTool = append(h.AfterTool, r.afterTool)
	case BeforeCompaction:
		h.BeforeCompaction = append(h.BeforeCompaction, r.beforeSummary)
	case BeforeNavigation:
		h.BeforeNavigation = append(h.BeforeNavigation, r.beforeSummary)
	}
}

// ask runs the program and reads its answer with take, which is not called when
// there is none.
func ask[R any](ctx context.Context, r runner, at place, e event, take func(answer) (R, error)) (R, error) {
	var nothing R
	out, err := r.run(ctx, at, e.line())
	if err != nil {
		return nothing, r.failed(err)
	}
	a, err := r.Point.parseAnswer(out)
	if err != nil {
		return nothing, r.failed(err)
	}
	if a == nil {
		return nothing, nil
	}
	result, err := take(a)
	if err != nil {
		return nothing, r.failed(err)
	}
	return result, nil
}

func (r runner) beforeDrive(ctx context.Context, in engine.BeforeDrive) error {
	at := place{in.Lane, in.RunID}
	_, err := ask(ctx, r, at, r.event(at).text("operation", string(in.Operation)), func(answer) (struct{}, error) {
		return struct{}{}, nil
	})
	return err
}

func (r runner) beforeRun(ctx context.Context, in engine.BeforeRun) ([]message.Message, error) {
	at := place{in.Lane, in.RunID}
	return ask(ctx, r, at, r.event(at).messages("prompt", in.Prompt), func(a answer) ([]message.Message, error) {
		return a.messages("messages", r.Now())
	})
}

func (r runner) beforeRunEnd(ctx context.Context, in engine.BeforeRunEnd) (string, error) {
	at := place{in.Lane, in.RunID}
	return ask(ctx, r, at, r.event(at).messages("messages", in.Messages), func(a answer) (string, error) {
		text, _, err := a.text("followUp")
		return text, err
	})
}

func (r runner) transformContext(ctx context.Context, in engine.RequestContext) (engine.RequestContext, error) {
	at := place{in.Lane, in.RunID}
	e := r.event(at).messages("messages", in.Messages).text("systemPrompt", *in.SystemPrompt)
	return ask(ctx, r, at, e, func(a answer) (out engine.RequestContext, err error) {
		if out.Messages, err = a.messages("messages", r.Now()); err != nil {
			return out, err
		}
		prompt, given, err := a.text("systemPrompt")
		if given {
			out.SystemPrompt = &prompt
		}
		return out, err
	})
}

func (r runner) beforeRequest(ctx context.Context, in engine.BeforeRequest) (*message.StreamOptions, error) {
	at := place{in.Lane, in.RunID}
	options, err := json.Marshal(in.Options)
	if err != nil {
		return nil, r.failed(err)
	}
	e := r.event(at).model(in.Model).text("step", in.Step).integer("attempt", in.Attempt).raw("streamOptions", options)
	return ask(ctx, r, at, e, answer.options)
}

func (r runner) beforePayload(ctx context.Context, in engine.BeforePayload) (json.RawMessage, error) {
	at := place{in.Lane, in.RunID}
	return ask(ctx, r, at, r.event(at).model(in.Model).raw("payload", in.Payload), func(a answer) (json.RawMessage, error) {
		return a["payload"], nil
	})
}

func (r runner) afterResponse(ctx context.Context, in engine.AfterResponse) (message.Message, error) {
	at := place{in.Lane, in.RunID}
	e := r.event(at)
	if in.Metadata.Status != 0 {
		e = e.integer("status", int64(in.Metadata.Status))
	}
	e = e.headers(in.Metadata.Headers).raw("message", json.RawMessage(in.Message))
	return ask(ctx, r, at, e, func(a answer) (message.Message, error) {
		raw, err := a.of("message", rawjson.Object, "a message")
		if raw == nil || err != nil {
			return nil, err
		}
		m, err := message.Normalize(raw, in.Message.Timestamp())
		switch {
		case err != nil:
		case m.Role() != message.RoleAssistant:
			err = errors.New("message is not of the assistant")
		case m.StopReason() == message.StopAborted && in.Message.StopReason() != message.StopAborted:
			err = errors.New("message is aborted, which only an abort makes it")
		}
		return m, err
	})
}

func (r runner) beforeTool(ctx context.Context, in engine.BeforeTool) (engine.ToolDecision, error) {
	if !r.wants(in.Name) {
		return engine.ToolDecision{}, nil
	}
	at := place{in.Lane, in.RunID}
	e := r.event(at).text("toolCallId", in.ToolCallID).text("toolName", in.Name).raw("args", in.Args)
	return ask(ctx, r, at, e, answer.decision)
}

func (r runner) afterTool(ctx context.Context, in engine.AfterTool) (engine.ToolPatch, error) {
	if !r.wants(in.Name) {
		return engine.ToolPatch{}, nil
	}
	at := place{in.Lane, in.RunID}
	e := r.event(at).text("toolCallId", in.ToolCallID).text("toolName", in.Name).raw("args", in.Args).boolean("isError", in.Result.IsError)
	if u := in.Result.Usage; u != nil {
		raw, err := u.AppendJSON(nil)
		if err != nil {
			return engine.ToolPatch{}, r.failed(err)
		}
		e = e.raw("usage", raw)
	}
	return ask(ctx, r, at, e.raw("details", in.Result.Details).blocks("content", in.Result.Content), answer.patch)
}

func (r runner) beforeSummary(ctx context.Context, in engine.BeforeSummary) (engine.SummaryDecision, error) {
	at := place{in.Lane, in.RunID}
	preparation, err := in.Preparation.AppendJSON(nil)
	if err != nil {
		return engine.SummaryDecision{}, r.failed(err)
	}
	e, field := r.event(at), "summary"
	if r.Point == BeforeCompaction {
		e, field = e.text("reason", string(in.Reason)), "compaction"
	} else {
		e = e.text("targetId", string(in.TargetID))
	}
	e = e.optional("customInstructions", in.CustomInstructions).raw("preparation", preparation)
	return ask(ctx, r, at, e, func(a answer) (engine.SummaryDecision, error) { return a.summary(field) })
}
