package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model/answer"
)

var _ effect.DeferredModel = (*responsesModel)(nil)

// submissionKey is the metadata under which a stored response says which entry it
// was asked for. The API has no call that lists responses: a submission whose
// answer got lost cannot be found by it, and is recovered as any other request is
// (D34, spec §4.5).
const submissionKey = "drover_entry"

// pollAfterMs is how long a job is left alone, in ms: most take some minutes, and
// the server keeps them for no less than ten.
const pollAfterMs = 15_000

// isDeferred reads the deferred option: false, true or an object. Background mode
// takes no window.
func isDeferred(option json.RawMessage) bool {
	switch rawjson.KindOf(option) {
	case rawjson.Object:
		return true
	case rawjson.Bool:
		return option[0] == 't'
	}
	return false
}

// submit asks for an answer in the background. A server that knows no background
// mode answers at once, and that is taken.
func (m *responsesModel) submit(ctx context.Context, b *answer.Builder, req effect.Request) error {
	body, err := b.Body(ctx, backgroundBody(m.provider.endpoint.Provider, m.spec, req))
	if err != nil {
		return err
	}
	res, err := m.post(ctx, b, body, option.WithHeader("Idempotency-Key", req.ResponseEntryID))
	if err != nil {
		return err
	}
	return m.job(b, res, nil)
}

// Poll asks once for the answer of a background job. While the job runs, and when
// the question itself found no answer, it ends as deferred with handle (D33).
func (m *responsesModel) Poll(ctx context.Context, handle message.DeferredHandle, req effect.Request) effect.Events {
	return answer.Poll(ctx, req, m.base(), handle, func(ctx context.Context, b *answer.Builder) error {
		var query responses.ResponseGetParams
		if reasons(m.spec, req.Thinking) {
			query.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
		}
		res, err := m.send(ctx, b, func(options ...option.RequestOption) error {
			_, err := m.provider.client().Get(ctx, handle.ID(), query, options...)
			return err
		})
		if err != nil {
			return err
		}
		return m.job(b, res, handle.Raw)
	})
}

// Cancel asks the server to drop a job. One that has ended, or is unknown, is
// dropped already.
func (m *responsesModel) Cancel(ctx context.Context, handle message.DeferredHandle) error {
	var key string
	if get := m.provider.endpoint.Key; get != nil {
		var err error
		if key, err = get(ctx); err != nil {
			return err
		}
	}
	res, err := call(key, func(int, http.Header) {}, func(options ...option.RequestOption) error {
		_, err := m.provider.client().Cancel(ctx, handle.ID(), options...)
		return err
	})
	if refusal, ok := errors.AsType[*answer.Refusal](err); ok && refusal.Status == http.StatusNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// job reads what the server says of a job: its handle while it runs, else the
// answer. handle is the stored one, nil for a new job.
func (m *responsesModel) job(b *answer.Builder, res *http.Response, handle json.RawMessage) error {
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	v, err := pick(data, "id", "status")
	if id, status := text(v[0]), text(v[1]); err == nil && id != "" && (status == "queued" || status == "in_progress") {
		if handle == nil {
			handle = m.handle(id)
		}
		b.Deferred(message.DeferredHandle{Raw: handle})
		return nil
	}
	return newResponsesAnswer(b).whole(data)
}

// handle identifies a new job (spec §3.2).
func (m *responsesModel) handle(id string) json.RawMessage {
	h := appendText(appendName([]byte{'{'}, "provider"), m.provider.endpoint.Provider)
	h = appendText(appendName(h, "modelId"), m.spec.ID)
	h = appendText(appendName(h, "api"), responsesAPI)
	h = appendText(appendName(h, "id"), id)
	return append(rawjson.AppendInt(appendName(h, "pollAfterMs"), pollAfterMs), '}')
}
