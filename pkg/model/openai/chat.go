package openai

import (
	"context"
	"io"
	"mime"
	"net/http"
	"sync"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
	"github.com/drover-run/drover/pkg/model/answer"
)

// chatAPI is the name of the interface in models and answers.
const chatAPI = "openai-completions"

// NewCompatible returns the provider of an endpoint that speaks Chat
// Completions, as OpenAI's does and many servers more or less like it. How far a
// server is from the original, quirks say; what answers may lack is made up for
// without them: ids and indexes of tool calls, deltas, an end that is named.
func NewCompatible(e model.Endpoint, q Quirks) model.Provider {
	if e.BaseURL == "" {
		e.BaseURL = vendorURL
	}
	return &chatProvider{endpoint: e, quirks: q, client: sync.OnceValue(func() *responses.ResponseService {
		// The SDK's whole client would read OpenAI's key and headers from the
		// environment, which are not this server's to see.
		service := responses.NewResponseService(append(responsesOptions(e), option.WithMiddleware(toChat))...)
		return &service
	})}
}

// chatProvider makes its client on first use.
type chatProvider struct {
	endpoint model.Endpoint
	quirks   Quirks
	client   func() *responses.ResponseService
}

// toChat turns a call of the SDK's Responses service into one of Chat
// Completions. The SDK's own service for these is in a package that takes longer
// to initialize than all else in it, and every command would wait for that.
func toChat(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	req.URL = req.URL.JoinPath("..", "chat", "completions")
	return next(req)
}

// Models lists the described models.
func (p *chatProvider) Models() []string { return p.endpoint.Models.IDs() }

// Resolve returns the model of that id, described or not.
func (p *chatProvider) Resolve(id string) (effect.Model, error) {
	if why := p.endpoint.Unusable; why != "" {
		return nil, &effect.UnknownModel{Ref: message.ModelRef{Provider: p.endpoint.Provider, ModelID: id}, Reason: why, Unusable: true}
	}
	return &chatModel{provider: p, spec: p.endpoint.Models.Find(id)}, nil
}

// chatModel is one model of the provider.
type chatModel struct {
	provider *chatProvider
	spec     model.Spec
}

func (m *chatModel) Info() effect.ModelInfo {
	return m.spec.Info(m.provider.endpoint.Provider, chatAPI)
}

// Stream answers the request.
func (m *chatModel) Stream(ctx context.Context, req effect.Request) effect.Events {
	e := m.provider.endpoint
	base := answer.Base{Provider: e.Provider, API: chatAPI, Model: m.spec.ID, Address: e.BaseURL, Prices: m.spec.Prices}
	return answer.Stream(ctx, req, base, func(ctx context.Context, b *answer.Builder) error {
		key, err := b.Key(ctx, e)
		if err != nil {
			return err
		}
		body, err := b.Body(ctx, chatBody(e.Provider, m.spec, m.provider.quirks, req))
		if err != nil {
			return err
		}
		res, err := call(key, b.Response, func(options ...option.RequestOption) error {
			options = append(options, option.WithRequestBody("application/json", body), option.WithHeader("Accept", "text/event-stream"))
			_, err := m.provider.client().New(ctx, responses.ResponseNewParams{}, options...)
			return err
		})
		if err != nil {
			return err
		}
		defer res.Body.Close()
		return readChat(b, m.provider.quirks, res)
	})
}

// readChat reads an answer, in events or in one piece: servers may not know how
// to stream. A page for people is none.
func readChat(b *answer.Builder, q Quirks, res *http.Response) error {
	c := newChat(b, q)
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch media {
	case "application/json":
		data, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		if err := c.chunk(data); err != nil {
			return err
		}
		return c.end(true)
	case "text/html":
		return answer.Permanent("the server sent a web page, and no answer: is that the right base URL?")
	}
	return c.stream(res.Body)
}
