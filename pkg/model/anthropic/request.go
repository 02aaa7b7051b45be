package anthropic

import (
	"encoding/json"
	"strconv"

	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
)

// cacheMark asks the provider to cache the request up to the block that has it.
const cacheMark = `,"cache_control":{"type":"ephemeral"}`

// outputUnknown is the output limit, in tokens, of a request for which neither
// the engine nor the model's description knows one; the API demands a limit.
const outputUnknown = 4096

// olderVersion is the API's version that still takes a temperature; the SDK's
// own does not.
const olderVersion = "2023-06-01"

// request is one call of the Messages API on its way out.
type request struct {
	body  []byte
	betas []string // features that a header asks for
	older bool     // it needs the API's older version
}

// options are the headers that the body depends on.
func (r request) options() []option.RequestOption {
	var all []option.RequestOption
	for _, beta := range r.betas {
		all = append(all, option.WithHeaderAdd("Anthropic-Beta", beta))
	}
	if r.older {
		all = append(all, option.WithHeader("Anthropic-Version", olderVersion))
	}
	return all
}

// newRequest builds the body of a call. What is stored goes out as it is stored,
// in raw JSON: a signature holds only for the bytes it was made for. A temperature
// goes only to a model that takes one, while it does not think.
func newRequest(provider string, spec model.Spec, req effect.Request, stream bool) request {
	ref := message.ModelRef{Provider: provider, ModelID: spec.ID}
	t := thinkingFor(ref, spec, req)
	r := request{betas: t.betas}
	h := history{model: ref, images: spec.Images, thinking: t.history}
	h.add(message.Heal(req.Messages))
	b := append([]byte(nil), `{"model":`...)
	b = rawjson.AppendQuote(b, spec.ID)
	b = rawjson.AppendInt(append(b, `,"max_tokens":`...), outputLimit(spec, req))
	if stream {
		b = append(b, `,"stream":true`...)
	}
	b = appendSystem(b, append([]string{req.SystemPrompt}, h.system...))
	b = appendTools(b, req.Tools, h.called)
	b = append(b, t.body...)
	if temperature := req.Options.Temperature; temperature != nil && !t.on && familyOf(spec.ID).sampling {
		r.older = true
		b = strconv.AppendFloat(append(b, `,"temperature":`...), *temperature, 'f', -1, 64)
	}
	r.body = append(h.close(append(b, `,"messages":`...)), '}')
	repairSurrogates(r.body)
	return r
}

func outputLimit(spec model.Spec, req effect.Request) int64 {
	switch {
	case req.MaxOutput > 0:
		return req.MaxOutput
	case spec.MaxTokens > 0:
		return spec.MaxTokens
	}
	return outputUnknown
}

// appendSystem appends the system prompt, one block for each text.
func appendSystem(b []byte, texts []string) []byte {
	first := true
	for _, text := range texts {
		if blank(text) {
			continue
		}
		if first {
			b = append(b, `,"system":[`...)
		} else {
			b = append(b, ',')
		}
		first = false
		b = append(appendText(b, text), '}')
	}
	if first {
		return b
	}
	return append(markLast(b), ']')
}

// appendTools declares the tools. The API wants to know every tool that the
// history speaks of: with none active, those are declared and may not be called.
func appendTools(b []byte, tools []message.ToolSpec, called []string) []byte {
	idle := len(tools) == 0
	if idle {
		for _, name := range called {
			tools = append(tools, message.ToolSpec{Name: name})
		}
	}
	if len(tools) == 0 {
		return b
	}
	for i, tool := range tools {
		separator := `,{"name":`
		if i == 0 {
			separator = `,"tools":[{"name":`
		}
		b = rawjson.AppendQuote(append(b, separator...), tool.Name)
		if tool.Description != "" {
			b = rawjson.AppendQuote(append(b, `,"description":`...), tool.Description)
		}
		b = append(append(b, `,"input_schema":`...), schemaOf(tool)...)
		b = append(b, '}')
	}
	b = append(markLast(b), ']')
	if idle {
		b = append(b, `,"tool_choice":{"type":"none"}`...)
	}
	return b
}

// schemaOf is the schema of a tool's arguments, which the API wants to be an
// object's.
func schemaOf(tool message.ToolSpec) json.RawMessage {
	if rawjson.KindOf(tool.Parameters) != rawjson.Object {
		return json.RawMessage(`{"type":"object"}`)
	}
	if _, ok := rawjson.Get(tool.Parameters, "type"); ok {
		return tool.Parameters
	}
	schema, err := rawjson.Set(tool.Parameters, "type", []byte(`"object"`))
	if err != nil {
		return tool.Parameters
	}
	return schema
}

// markLast puts the cache mark into the object that b ends with.
func markLast(b []byte) []byte {
	return append(append(b[:len(b)-1], cacheMark...), '}')
}

// appendText opens a text block; the caller closes it.
func appendText(b []byte, text string) []byte {
	return rawjson.AppendQuote(append(b, `{"type":"text","text":`...), text)
}
