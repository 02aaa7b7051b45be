package openai

import (
	"strconv"
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
)

// minOutputTokens is the least limit that the Responses API takes.
const minOutputTokens = 16

// responsesBody is the body of a request that is answered as a stream and that
// the server keeps nothing of.
func responsesBody(provider string, spec model.Spec, req effect.Request) []byte {
	b := appendRequest(nil, provider, spec, req)
	return append(b, `,"store":false,"stream":true}`...)
}

// backgroundBody is the body of a request that is answered later. Background mode
// needs a stored response: it is what polls read. The reserved entry id is the
// job's key on the server's side (D34).
func backgroundBody(provider string, spec model.Spec, req effect.Request) []byte {
	b := appendRequest(nil, provider, spec, req)
	b = append(b, `,"background":true,"store":true,"metadata":{`...)
	b = appendText(appendName(b, submissionKey), req.ResponseEntryID)
	return append(b, "}}"...)
}

// appendRequest appends what all requests have in common, and leaves the object
// open.
func appendRequest(b []byte, provider string, spec model.Spec, req effect.Request) []byte {
	b = appendText(appendName(append(b, '{'), "model"), spec.ID)
	if req.SystemPrompt != "" {
		b = appendText(appendName(b, "instructions"), req.SystemPrompt)
	}
	in := newInput(provider, spec)
	for _, m := range req.Messages {
		in.add(m)
	}
	b = append(appendName(b, "input"), '[')
	b = append(append(b, in.items...), ']')
	if len(req.Tools) > 0 {
		b = appendTools(appendName(b, "tools"), req.Tools)
		b = append(b, `,"tool_choice":"auto","parallel_tool_calls":true`...)
	}
	if req.MaxOutput > 0 {
		b = rawjson.AppendInt(appendName(b, "max_output_tokens"), max(req.MaxOutput, minOutputTokens))
	}
	if t := req.Options.Temperature; t != nil {
		b = strconv.AppendFloat(appendName(b, "temperature"), *t, 'f', -1, 64)
	}
	return appendReasoning(b, spec, req.Thinking)
}

// appendReasoning asks for reasoning, and for the encrypted items that carry it
// to the next request.
func appendReasoning(b []byte, spec model.Spec, level message.ThinkingLevel) []byte {
	if reasons(spec, level) {
		b = append(appendName(b, "include"), `["reasoning.encrypted_content"]`...)
	}
	switch {
	case !isOff(level):
		b = appendText(append(appendName(b, "reasoning"), `{"effort":`...), string(level))
		b = append(b, `,"summary":"auto"}`...)
	case takesNone(spec.ID):
		b = append(appendName(b, "reasoning"), `{"effort":"none"}`...)
	}
	return b
}

// reasons tells whether the answer may hold reasoning. Models that do not reason
// refuse to be asked for it, so one that nobody described is asked only when the
// user does.
func reasons(spec model.Spec, level message.ThinkingLevel) bool {
	return !isOff(level) || len(spec.Thinking) > 0 && !spec.Assumed
}

func isOff(level message.ThinkingLevel) bool { return level == "" || level == message.ThinkingOff }

// takesNone tells whether a model can be asked not to reason: the general ones
// can from gpt-5.1 on. Any other does what its vendor made it do.
func takesNone(id string) bool {
	version, ok := strings.CutPrefix(id, "gpt-")
	if !ok || strings.Contains(version, "-pro") || strings.Contains(version, "-codex") {
		return false
	}
	version, _, _ = strings.Cut(version, "-")
	n, err := strconv.ParseFloat(version, 64)
	return err == nil && n > 5
}

func appendTools(b []byte, tools []message.ToolSpec) []byte {
	b = append(b, '[')
	for i, t := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(append(b, `{"type":"function","name":`...), t.Name)
		b = appendText(append(b, `,"description":`...), t.Description)
		b = append(b, `,"parameters":`...)
		if rawjson.KindOf(t.Parameters) == rawjson.Object {
			b = append(b, t.Parameters...)
		} else {
			b = append(b, `{"type":"object","properties":{}}`...)
		}
		b = append(b, `,"strict":false}`...)
	}
	return append(b, ']')
}

// appendName appends the name of an object's next member.
func appendName(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(rawjson.AppendQuote(b, name), ':')
}

// appendText appends a string. Half characters, which servers refuse, become
// U+FFFD.
func appendText(b []byte, s string) []byte {
	return rawjson.AppendQuote(b, strings.ToValidUTF8(s, "\uFFFD"))
}
