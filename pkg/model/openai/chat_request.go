package openai

import (
	"strconv"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
)

// chatBody is the request in the words of Chat Completions.
func chatBody(provider string, spec model.Spec, q Quirks, req effect.Request) []byte {
	b := appendText([]byte(`{"model":`), spec.ID)
	c := &chatMessages{provider: provider, spec: spec, quirks: q, buf: append(b, `,"messages":[`...)}
	if req.SystemPrompt != "" {
		c.say(q.systemRole(), req.SystemPrompt)
	}
	for _, m := range req.Messages {
		c.add(m)
	}
	c.showImages()
	b = append(c.buf, ']')
	if len(req.Tools) > 0 {
		b = appendChatTools(b, req.Tools)
	}
	if req.MaxOutput > 0 {
		b = rawjson.AppendInt(appendName(b, q.tokenField()), req.MaxOutput)
	}
	if t := req.Options.Temperature; t != nil {
		b = strconv.AppendFloat(appendName(b, "temperature"), *t, 'g', -1, 64)
	}
	b = appendEffort(b, q, req.Thinking)
	b = append(b, `,"stream":true`...)
	if !q.NoStreamOptions {
		b = append(b, `,"stream_options":{"include_usage":true}`...)
	}
	return append(b, '}')
}

// appendEffort asks for thinking; without a level the server decides.
func appendEffort(b []byte, q Quirks, level message.ThinkingLevel) []byte {
	if level == "" || level == message.ThinkingOff {
		return b
	}
	switch q.effort() {
	case EffortFlat:
		b = appendText(appendName(b, "reasoning_effort"), string(level))
	case EffortNested:
		b = append(appendText(append(b, `,"reasoning":{"effort":`...), string(level)), '}')
	}
	return b
}

func appendChatTools(b []byte, tools []message.ToolSpec) []byte {
	b = append(b, `,"tools":[`...)
	for i, tool := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(append(b, `{"type":"function","function":{"name":`...), tool.Name)
		if tool.Description != "" {
			b = appendText(appendName(b, "description"), tool.Description)
		}
		if len(tool.Parameters) > 0 {
			b = append(appendName(b, "parameters"), tool.Parameters...)
		}
		b = append(b, "}}"...)
	}
	return append(b, ']')
}
