package scripted

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

// show gives hooks the body that a provider beyond this machine would be sent, and
// takes over the messages and the system prompt of the one that they give back.
func show(ctx context.Context, req effect.Request) (effect.Request, error) {
	if req.Payload == nil {
		return req, nil
	}
	body, err := req.Payload(ctx, payload(req))
	if err != nil {
		return req, err
	}
	if system, ok := rawjson.GetString(body, "systemPrompt"); ok {
		req.SystemPrompt = system
	}
	raw, ok := rawjson.Get(body, "messages")
	if !ok || rawjson.KindOf(raw) != rawjson.Array {
		return req, fmt.Errorf("the request has no messages")
	}
	req.Messages = nil
	for element, err := range rawjson.Elements(raw) {
		if err != nil {
			return req, err
		}
		if err := message.Validate(message.Message(element)); err != nil {
			return req, err
		}
		req.Messages = append(req.Messages, message.Message(element))
	}
	return req, nil
}

// payload is a request's body.
func payload(req effect.Request) json.RawMessage {
	body := rawjson.AppendQuote([]byte(`{"systemPrompt":`), req.SystemPrompt)
	body = append(body, `,"tools":[`...)
	for i, t := range req.Tools {
		if i > 0 {
			body = append(body, ',')
		}
		body = rawjson.AppendQuote(body, t.Name)
	}
	body = append(body, `],"messages":[`...)
	for i, m := range req.Messages {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, m...)
	}
	return append(body, "]}"...)
}
