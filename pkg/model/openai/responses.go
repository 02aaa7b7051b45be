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

// responsesAPI is the name of the interface in models, answers and handles.
const responsesAPI = "openai-responses"

// vendorURL is where requests go when the endpoint does not say.
const vendorURL = "https://api.openai.com/v1/"

// New returns the provider of an endpoint that speaks the Responses API. Its
// requests are stateless: the server keeps nothing (`store: false`), and
// reasoning comes back encrypted to be sent again. Its models also answer later,
// by background mode, which needs the server to store request and answer
// (`store: true`) until it deletes them by its own rules.
func New(e model.Endpoint) model.Provider {
	if e.BaseURL == "" {
		e.BaseURL = vendorURL
	}
	return &responsesProvider{endpoint: e, client: sync.OnceValue(func() *responses.ResponseService {
		service := responses.NewResponseService(responsesOptions(e)...)
		return &service
	})}
}

// responsesProvider makes its client on first use. It asks the environment for
// nothing.
type responsesProvider struct {
	endpoint model.Endpoint
	client   func() *responses.ResponseService
}

func responsesOptions(e model.Endpoint) []option.RequestOption {
	options := []option.RequestOption{option.WithBaseURL(e.BaseURL), option.WithMaxRetries(0)}
	if e.Client != nil {
		options = append(options, option.WithHTTPClient(e.Client))
	}
	for name, value := range e.Headers {
		options = append(options, option.WithHeader(name, value))
	}
	return options
}

// Models lists the described models.
func (p *responsesProvider) Models() []string { return p.endpoint.Models.IDs() }

// Resolve returns the model of that id, described or not.
func (p *responsesProvider) Resolve(id string) (effect.Model, error) {
	if why := p.endpoint.Unusable; why != "" {
		return nil, &effect.UnknownModel{Ref: message.ModelRef{Provider: p.endpoint.Provider, ModelID: id}, Reason: why, Unusable: true}
	}
	return &responsesModel{provider: p, spec: p.endpoint.Models.Find(id)}, nil
}

// responsesModel is one model of the provider. It implements
// effect.DeferredModel.
type responsesModel struct {
	provider *responsesProvider
	spec     model.Spec
}

func (m *responsesModel) Info() effect.ModelInfo {
	return m.spec.Info(m.provider.endpoint.Provider, responsesAPI)
}

func (m *responsesModel) base() answer.Base {
	e := m.provider.endpoint
	return answer.Base{Provider: e.Provider, API: responsesAPI, Model: m.spec.ID, Address: e.BaseURL, Prices: m.spec.Prices}
}

// Stream answers the request, or submits it to be answered later when its
// options ask for that.
func (m *responsesModel) Stream(ctx context.Context, req effect.Request) effect.Events {
	return answer.Stream(ctx, req, m.base(), func(ctx context.Context, b *answer.Builder) error {
		if isDeferred(req.Options.Deferred) {
			return m.submit(ctx, b, req)
		}
		body, err := b.Body(ctx, responsesBody(m.provider.endpoint.Provider, m.spec, req))
		if err != nil {
			return err
		}
		res, err := m.post(ctx, b, body)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		return readAnswer(b, res)
	})
}

// post sends a request body.
func (m *responsesModel) post(ctx context.Context, b *answer.Builder, body []byte, more ...option.RequestOption) (*http.Response, error) {
	more = append(more, option.WithRequestBody("application/json", body))
	return m.send(ctx, b, func(options ...option.RequestOption) error {
		_, err := m.provider.client().New(ctx, responses.ResponseNewParams{}, append(options, more...)...)
		return err
	})
}

// send makes one call of the SDK for a request.
func (m *responsesModel) send(ctx context.Context, b *answer.Builder, do func(...option.RequestOption) error) (*http.Response, error) {
	key, err := b.Key(ctx, m.provider.endpoint)
	if err != nil {
		return nil, err
	}
	return call(key, b.Response, do)
}

// call makes one call of the SDK and returns its response unread. A response of
// status 300 or more is a refusal.
func call(key string, seen func(int, http.Header), do func(...option.RequestOption) error) (*http.Response, error) {
	var res *http.Response
	options := []option.RequestOption{option.WithResponseBodyInto(&res), option.WithMiddleware(observe(seen))}
	if key != "" {
		options = append(options, option.WithAPIKey(key))
	}
	if err := do(options...); err != nil {
		return nil, err
	}
	return res, nil
}

// maxRefusal is how much of a refusal's body is read, in bytes.
const maxRefusal = 64 << 10

// observe tells a response's metadata before its body is read, and reads a
// refusal itself: the SDK loses the status of one that is not JSON.
func observe(seen func(int, http.Header)) option.Middleware {
	return func(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		res, err := next(req)
		if err != nil {
			return nil, err
		}
		seen(res.StatusCode, res.Header)
		if res.StatusCode < 300 {
			return res, nil
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal)) // what there is of it
		return nil, answer.Refused(res.StatusCode, res.Header, body)
	}
}

// readAnswer reads an answer, in events or in one piece. A page for people is
// none.
func readAnswer(b *answer.Builder, res *http.Response) error {
	a := newResponsesAnswer(b)
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch media {
	case "application/json":
		data, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		return a.whole(data)
	case "text/html":
		page, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal)) // what there is of it
		refusal := answer.Garbled("a web page", page)
		refusal.Class = message.ClassInvalidRequest // it would come again
		return refusal
	}
	return a.stream(res.Body)
}
