package anthropic

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model/answer"
)

// errNoRow says that a batch has no row of a key that was looked for.
var errNoRow = errors.New("the batch has no such row")

// Poll asks once how a batch stands. While it is processed, and when the question
// got no answer, the job stays pending under the stored handle (D33).
func (m *messages) Poll(ctx context.Context, handle message.DeferredHandle, req effect.Request) effect.Events {
	return answer.Poll(ctx, req, m.base(), handle, func(ctx context.Context, b *answer.Builder) error {
		reply, err := m.ask(ctx, b, http.MethodGet, batchPath(handle.ID()), nil)
		if err != nil {
			return err
		}
		j, ok := parseJob(reply)
		switch {
		case !ok:
			return answer.Garbled("no batch", reply)
		case !j.ended():
			b.Deferred(handle)
			return nil
		}
		row, err := m.row(ctx, b, handle.ID(), rowOf(handle))
		switch {
		case errors.Is(err, errNoRow):
			return answer.Permanent("batch " + handle.ID() + " has no row for this answer")
		case err != nil && j.young(req.Now):
			return answer.Kept(err) // it has ended: its results are there, or come late
		case err != nil:
			return err
		}
		b.Prices(m.spec.Prices.Times(batchShare))
		return readResult(b, row.result)
	})
}

func batchPath(id string) string { return batchesPath + "/" + url.PathEscape(id) }

// batchRow is what became of one request of a batch.
type batchRow struct {
	key    string
	result []byte
}

// row fetches the results of a batch that has ended and returns the first row of any
// of the keys, or errNoRow. A batch has rows: results without one are cut off.
func (m *messages) row(ctx context.Context, b *answer.Builder, batch string, keys ...string) (batchRow, error) {
	res, err := m.call(ctx, b, http.MethodGet, batchPath(batch)+"/results", nil)
	if err != nil {
		return batchRow{}, err
	}
	defer func() { _ = res.Body.Close() }()
	lines, missing := bufio.NewReader(res.Body), io.ErrUnexpectedEOF
	for {
		line, err := lines.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if rawjson.Valid(line) != nil || rawjson.KindOf(line) != rawjson.Object {
				return batchRow{}, answer.Garbled("a result that is no JSON object", line)
			}
			if key, _ := rawjson.GetString(line, "custom_id"); slices.Contains(keys, key) {
				result, _ := rawjson.Get(line, "result")
				return batchRow{key, result}, nil
			}
			missing = errNoRow
		}
		switch {
		case err == io.EOF:
			return batchRow{}, missing
		case err != nil:
			return batchRow{}, err
		}
	}
}

// batchShare is what the tokens of a batch cost, of what they would cost at once.
const batchShare = 0.5

// readResult turns the result of a row into an answer.
func readResult(b *answer.Builder, result []byte) error {
	kind, _ := rawjson.GetString(result, "type")
	switch kind {
	case "succeeded":
		m, _ := rawjson.Get(result, "message")
		return newReader(b).whole(m)
	case "errored":
		fault, _ := rawjson.Get(result, "error")
		return answer.Reported(fault)
	case "canceled":
		return answer.Permanent("the deferred answer was cancelled")
	case "expired":
		return answer.Permanent("the deferred answer expired: the provider had not begun it in time")
	}
	return answer.Garbled("a result of an unknown kind", result)
}

// Cancel asks the provider to drop a batch; one that has ended already needs no
// dropping.
func (m *messages) Cancel(ctx context.Context, handle message.DeferredHandle) error {
	res, err := m.call(ctx, &answer.Builder{}, http.MethodPost, batchPath(handle.ID())+"/cancel", nil)
	if r, ok := errors.AsType[*answer.Refusal](err); ok && (r.Status == http.StatusNotFound || r.Status == http.StatusConflict) {
		return nil
	}
	if err != nil {
		return err
	}
	return res.Body.Close()
}
