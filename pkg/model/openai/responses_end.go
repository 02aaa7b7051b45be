package openai

import (
	"strconv"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model/answer"
)

// response ends the answer: what its output holds beyond the events before, its
// usage, its status.
func (a *responsesAnswer) response(response []byte) error {
	v := fields(response, "id", "model", "output", "usage", "status", "incomplete_details", "error")
	a.b.Start(text(v[0]), text(v[1]))
	output, index := v[2], int64(0)
	// What is no list has no items.
	_ = rawjson.ElementsFunc(output, func(start, end int) bool {
		a.complete(index, output[start:end])
		index++
		return true
	})
	if rawjson.KindOf(v[3]) == rawjson.Object {
		a.b.Usage(responsesUsage(v[3]))
	}
	switch status := text(v[4]); status {
	case "completed":
		a.b.Done(message.StopStop, status)
		return nil
	case "incomplete":
		return a.incomplete(v[5])
	case "failed":
		return failed(v[6])
	case "":
		return answer.Garbled("a response without a status", response)
	default:
		return answer.Permanent("the response ended as " + strconv.Quote(status))
	}
}

// failed is the refusal of a response that failed.
func failed(fault []byte) error {
	if rawjson.KindOf(fault) != rawjson.Object {
		fault = []byte(`{"code":"server_error","message":"the response failed, and does not say why"}`)
	}
	return answer.Reported(fault)
}

// incomplete ends an answer that was cut off. Only the output limit leaves one
// that counts.
func (a *responsesAnswer) incomplete(details []byte) error {
	reason, _ := rawjson.GetString(details, "reason")
	if reason == "max_output_tokens" {
		a.b.Done(message.StopLength, reason)
		return nil
	}
	refusal := answer.Permanent("the answer is incomplete: " + reason)
	if reason == "content_filter" {
		refusal.Text = "the provider's content filter stopped the answer"
	}
	a.b.Stopped(reason)
	return refusal
}

// responsesUsage reads the usage; input counts what neither came from the cache
// nor went there.
func responsesUsage(raw []byte) message.Usage {
	var u message.Usage
	v := fields(raw, "input_tokens", "output_tokens", "total_tokens", "input_tokens_details", "output_tokens_details")
	u.CacheRead, _ = rawjson.GetInt(v[3], "cached_tokens")
	u.CacheWrite, _ = rawjson.GetInt(v[3], "cache_write_tokens")
	input, _ := rawjson.ParseInt(v[0])
	u.Input = input - u.CacheRead - u.CacheWrite
	u.Output, _ = rawjson.ParseInt(v[1])
	u.TotalTokens, _ = rawjson.ParseInt(v[2])
	if n, ok := rawjson.GetInt(v[4], "reasoning_tokens"); ok {
		u.Reasoning = &n
	}
	return u
}
