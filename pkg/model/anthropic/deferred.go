package anthropic

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model/answer"
)

// A deferred answer is a Message Batch of one row. The row's own key is the
// reserved id of the answer, so that a submission whose outcome was lost can be
// found again (D34).

const batchesPath = "v1/messages/batches"

// maxReply bounds what is read of a reply that describes batches, in bytes.
const maxReply = 4 << 20

// deferral reads the deferred option: false, true or {"window":"24h"}. A window
// that cannot be read is the one that batches have.
func deferral(option json.RawMessage) (window time.Duration, ok bool) {
	const batch = 24 * time.Hour
	switch rawjson.KindOf(option) {
	case rawjson.Object:
		text, _ := rawjson.GetString(option, "window")
		if d, err := time.ParseDuration(text); err == nil && d > 0 {
			return d, true
		}
		return batch, true
	case rawjson.Bool:
		return batch, string(option) == "true"
	}
	return 0, false
}

// submit sends the request as a batch; its answer is a handle.
func (m *messages) submit(ctx context.Context, req effect.Request, window time.Duration) effect.Events {
	return answer.Stream(ctx, req, m.base(), func(ctx context.Context, b *answer.Builder) error {
		r := newRequest(m.endpoint.Provider, m.spec, req, false)
		params, err := b.Body(ctx, r.body)
		if err != nil {
			return err
		}
		body := rawjson.AppendQuote([]byte(`{"requests":[{"custom_id":`), req.ResponseEntryID)
		body = append(append(append(body, `,"params":`...), params...), `}]}`...)
		reply, err := m.ask(ctx, b, http.MethodPost, batchesPath, body, r.options()...)
		if err != nil {
			return err
		}
		j, ok := parseJob(reply)
		if !ok {
			return answer.Garbled("no batch", reply)
		}
		b.Deferred(m.handle(j, req.ResponseEntryID, pollAfter(window)))
		return nil
	})
}

// pollAfter is how long to wait between polls of a job that is wanted within a
// window.
func pollAfter(window time.Duration) time.Duration {
	return min(max(window/60, 15*time.Second), 5*time.Minute)
}

// handle identifies a batch and its row.
func (m *messages) handle(j job, row string, poll time.Duration) message.DeferredHandle {
	h := rawjson.AppendQuote([]byte(`{"provider":`), m.endpoint.Provider)
	h = rawjson.AppendQuote(append(h, `,"modelId":`...), m.spec.ID)
	h = rawjson.AppendQuote(append(h, `,"api":`...), API)
	h = rawjson.AppendQuote(append(h, `,"id":`...), j.id)
	if !j.expires.IsZero() {
		h = rawjson.AppendInt(append(h, `,"expiresAt":`...), j.expires.UnixMilli())
	}
	h = rawjson.AppendInt(append(h, `,"pollAfterMs":`...), poll.Milliseconds())
	h = rawjson.AppendQuote(append(h, `,"data":{"row":`...), row)
	return message.DeferredHandle{Raw: append(h, "}}"...)}
}

// rowOf reads the handle's own part.
func rowOf(h message.DeferredHandle) string {
	data, _ := rawjson.Get(h.Raw, "data")
	row, _ := rawjson.GetString(data, "row")
	return row
}

// job is a batch as the API describes it.
type job struct {
	id, status       string
	created, expires time.Time
	rows             int64
}

func (j job) ended() bool { return j.status == "ended" }

func parseJob(raw []byte) (job, bool) {
	var j job
	j.id, _ = rawjson.GetString(raw, "id")
	j.status, _ = rawjson.GetString(raw, "processing_status")
	j.created, j.expires = timeOf(raw, "created_at"), timeOf(raw, "expires_at")
	counts, _ := rawjson.Get(raw, "request_counts")
	for _, kind := range []string{"processing", "succeeded", "errored", "canceled", "expired"} {
		n, _ := rawjson.GetInt(counts, kind)
		j.rows += n
	}
	return j, j.id != "" && j.status != ""
}

func timeOf(raw []byte, field string) time.Time {
	text, _ := rawjson.GetString(raw, field)
	at, _ := time.Parse(time.RFC3339, text) // zero when it is none
	return at
}

// ask makes a request and reads its whole reply, which must be JSON.
func (m *messages) ask(ctx context.Context, b *answer.Builder, method, path string, body any, extra ...option.RequestOption) ([]byte, error) {
	res, err := m.call(ctx, b, method, path, body, extra...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	reply, err := io.ReadAll(io.LimitReader(res.Body, maxReply))
	if err == nil && rawjson.Valid(reply) != nil {
		err = answer.Garbled("no JSON", reply)
	}
	return reply, err
}
