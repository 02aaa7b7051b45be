package enginetest

import (
	"context"
	"slices"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/message"
)

// Cases are the histories of the crash matrix. Every call makes them anew.
func Cases() []Case {
	return slices.Concat(
		runCases(), hookCases(), toolCases(), queueCases(), deferredCases(),
		autoCompactionCases(), compactionCases(), navigationCases(), abortCases(), abortSummaryCases(),
	)
}

// script says one line after the other to the prompt "go".
func script(lines ...Line) map[string][]Line { return map[string][]Line{"go": lines} }

// goes is the act of most cases.
func goes() []Act { return []Act{Prompt("go")} }

func answer(r Reply) Line { return func(*World) Reply { return r } }

func runCases() []Case {
	return []Case{
		{Name: "one run", Acts: goes(), Script: script(answer(Reply{Thinking: "hm", Chunks: []string{"hello ", "you"}}))},
		{Name: "two runs", Acts: []Act{Prompt("one"), Prompt("two")}},
		{Name: "a retry that succeeds", Acts: goes(), Script: script(first(Fail("overloaded"), say("ok")))},
		{
			Name: "a failure with content, then success", Acts: goes(),
			Script: script(first(Reply{Chunks: []string{"par"}, Error: "502 bad gateway"}, say("ok"))),
		},
		{
			Name: "retries that run out", Acts: goes(), Script: script(answer(Fail("500"))),
			Setup: func(w *World) { w.Options.Retry.MaxRetries = 2 }, Differs: Differs{Capped: true},
		},
		{
			Name: "a wait before a retry", Acts: goes(), Script: script(first(Refuse("slow down", 429, 5_000), say("ok"))),
			Setup: func(w *World) { w.Options.Retry.BaseDelayMs = 100 },
		},
		{
			Name: "a permanent failure, then another run", Acts: []Act{Prompt("go"), Prompt("two")},
			Script: script(answer(Refuse("invalid request", 400, 0))),
		},
		{
			Name: "a genuine length", Acts: goes(),
			Script: script(answer(Reply{Chunks: []string{"cut"}, Stop: message.StopLength, Usage: &message.Usage{Input: 100, Output: 8_000, TotalTokens: 8_100}})),
		},
		{Name: "a stream that vanishes, then success", Acts: goes(), Script: script(first(Reply{Chunks: []string{"par"}, Vanish: true}, say("ok")))},
		{
			Name: "a model that comes later", Acts: goes(),
			At: map[string]func(*World) error{"run.begin": func(w *World) error {
				if w.Once("gone") {
					w.Models.Remove(Ref)
				}
				return nil
			}},
			Waits: map[engine.WaitReason]func(*World) error{engine.WaitMissing: func(w *World) error {
				w.Models.Add(w.Model)
				return nil
			}},
		},
	}
}

// user is a message of a hook.
func user(w *World, text string) []message.Message {
	return []message.Message{message.NewUser(text, nil, w.Clock.Now())}
}

func hookCases() []Case {
	return []Case{
		{
			Name: "injected context", Acts: goes(), Script: map[string][]Line{"context": {say("ok")}},
			Setup: func(w *World) {
				w.Options.Hooks.BeforeRun = append(w.Options.Hooks.BeforeRun, func(context.Context, engine.BeforeRun) (m []message.Message, err error) {
					w.Effect("before_run", func() { m = user(w, "context") })
					return m, nil
				})
			},
		},
		{
			Name: "a run that a hook extends", Acts: goes(), Script: script(say("one")),
			Setup: func(w *World) {
				w.Options.Hooks.BeforeRunEnd = append(w.Options.Hooks.BeforeRunEnd, func(_ context.Context, e engine.BeforeRunEnd) (more string, err error) {
					w.Effect("before_run_end", func() {
						if len(e.Messages) == 2 {
							more = "and more"
						}
					})
					return more, nil
				})
			},
		},
		{
			Name: "a hook at every request", Acts: goes(), Script: script(say("one")),
			Setup: func(w *World) {
				h := &w.Options.Hooks
				h.BeforeDrive = append(h.BeforeDrive, func(context.Context, engine.BeforeDrive) error {
					w.Effect("before_drive", func() {})
					return nil
				})
				h.TransformContext = append(h.TransformContext, func(_ context.Context, c engine.RequestContext) (engine.RequestContext, error) {
					w.Effect("transform_context", func() { c.Messages = append(user(w, "by the way"), c.Messages...) })
					return c, nil
				})
				h.BeforeRequest = append(h.BeforeRequest, func(context.Context, engine.BeforeRequest) (*message.StreamOptions, error) {
					limit := int64(100)
					w.Effect("before_request", func() {})
					return &message.StreamOptions{MaxTokens: &limit}, nil
				})
				h.AfterResponse = append(h.AfterResponse, func(_ context.Context, r engine.AfterResponse) (m message.Message, err error) {
					w.Effect("after_response", func() { m, err = r.Message.With("responseId", []byte(`"hooked"`)) })
					return m, err
				})
			},
		},
	}
}
