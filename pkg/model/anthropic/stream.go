package anthropic

import (
	"bufio"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/model/answer"
)

const messagesPath = "v1/messages"

// stream asks the model and reads its answer as it comes.
func (m *messages) stream(ctx context.Context, b *answer.Builder, req effect.Request) error {
	r := newRequest(m.endpoint.Provider, m.spec, req, true)
	body, err := b.Body(ctx, r.body)
	if err != nil {
		return err
	}
	accept := option.WithHeader("Accept", "text/event-stream")
	res, err := m.call(ctx, b, http.MethodPost, messagesPath, body, append(r.options(), accept)...)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	return read(res, b)
}

// read reads an answer, in events or in one piece. A response that does not say
// what it is gets the benefit of the doubt.
func read(res *http.Response, b *answer.Builder) error {
	typ, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case err != nil || typ == "text/event-stream":
		return readEvents(ssestream.NewDecoder(res), b)
	case typ == "application/json":
		m, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		return readPiece(m, b)
	}
	said, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10)) // what there is of it
	return answer.Permanent("the answer is " + typ + ", not a stream of events; is that the right base URL? It begins: " +
		strings.Join(strings.Fields(string(said)), " "))
}

// readPiece reads an answer that comes in one piece. Servers before the model, which
// know another interface, may say there what is wrong.
func readPiece(m []byte, b *answer.Builder) error {
	if err := newReader(b).event("", m); err != nil || b.Ended() {
		return err
	}
	if said, ok := rawjson.Get(m, "error"); ok && rawjson.KindOf(said) != rawjson.Null {
		return answer.Reported(m)
	}
	return answer.Garbled("an object that is no message", m)
}

// readEvents reads until the answer has ended; a nil error without an end is a
// stream that was cut off.
func readEvents(events ssestream.Decoder, b *answer.Builder) error {
	r := newReader(b)
	for !b.Ended() && events.Next() {
		e := events.Event()
		if err := r.event(e.Type, e.Data); err != nil {
			return err
		}
	}
	if errors.Is(events.Err(), bufio.ErrTooLong) {
		return answer.Permanent("an event of the answer is longer than can be read")
	}
	return events.Err()
}

// reader turns the API's answer into the builder's.
type reader struct {
	b      *answer.Builder
	blocks map[int64]*block // by the API's index
	usage  usage
	reason string // the API's stop reason
	why    string // what it says of a refusal
	said   bool   // there is content
}

func newReader(b *answer.Builder) *reader { return &reader{b: b, blocks: map[int64]*block{}} }

// event takes one event in. Those of kinds that are not known, pings among them,
// say nothing.
func (r *reader) event(name string, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if rawjson.Valid(data) != nil || rawjson.KindOf(data) != rawjson.Object {
		return answer.Garbled("an event that is no JSON object", data)
	}
	if kind, ok := rawjson.GetString(data, "type"); ok {
		name = kind
	}
	switch name {
	case "message_start":
		start, _ := rawjson.Get(data, "message")
		r.start(start)
	case "content_block_start":
		content, _ := rawjson.Get(data, "content_block")
		r.open(indexOf(data), content)
	case "content_block_delta":
		delta, _ := rawjson.Get(data, "delta")
		return r.delta(indexOf(data), delta)
	case "content_block_stop":
		r.blocks[indexOf(data)].end()
	case "message_delta":
		delta, _ := rawjson.Get(data, "delta")
		r.stopped(delta)
		r.used(data)
	case "message_stop":
		return r.finish()
	case "message":
		return r.whole(data)
	case "error":
		return answer.Reported(data)
	}
	return nil
}

func indexOf(event []byte) int64 {
	index, _ := rawjson.GetInt(event, "index")
	return index
}

// start takes what a message says of itself before its content.
func (r *reader) start(m []byte) {
	id, _ := rawjson.GetString(m, "id")
	model, _ := rawjson.GetString(m, "model")
	r.b.Start(id, model)
	r.used(m)
}

// used takes the usage that an object has.
func (r *reader) used(object []byte) {
	if u, ok := rawjson.Get(object, "usage"); ok {
		r.usage.merge(u)
		r.b.Usage(r.usage.counts())
	}
}

// stopped takes why the answer stopped.
func (r *reader) stopped(object []byte) {
	if reason, ok := rawjson.GetString(object, "stop_reason"); ok {
		r.reason = reason
	}
	details, _ := rawjson.Get(object, "stop_details")
	if why, ok := rawjson.GetString(details, "explanation"); ok {
		r.why = why
	}
}
