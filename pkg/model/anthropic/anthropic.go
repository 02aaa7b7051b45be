// Package anthropic is the provider of models that speak the Messages API, on the
// vendor's SDK: the vendor's own, and endpoints that are compatible with it.
//
// The SDK makes the requests, signs them and reads the event stream; its retries
// are off. Requests are written and answers read as raw JSON, so that what the
// provider has signed goes back as it came (spec §3.7).
package anthropic

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
	"github.com/drover-run/drover/pkg/model/answer"
)

// API names the wire protocol in answers and deferred handles.
const API = "anthropic-messages"

// vendor is the address of requests to an endpoint that names none.
const vendor = "https://api.anthropic.com"

// New returns the provider of an endpoint. Nothing is made before a request needs
// it: an endpoint that is never used costs nothing.
func New(e model.Endpoint) model.Provider {
	p := &provider{endpoint: e}
	p.client = sync.OnceValue(p.connect)
	return p
}

type provider struct {
	endpoint model.Endpoint
	client   func() *sdk.Client
}

// Models lists the models that the endpoint's catalogue describes.
func (p *provider) Models() []string { return p.endpoint.Models.IDs() }

// Resolve returns the model of any id: whether the endpoint has it shows when it
// is asked. The error is an *effect.UnknownModel when no request can be made.
func (p *provider) Resolve(id string) (effect.Model, error) {
	if reason := p.endpoint.Unusable; reason != "" {
		ref := message.ModelRef{Provider: p.endpoint.Provider, ModelID: id}
		return nil, &effect.UnknownModel{Ref: ref, Reason: reason, Unusable: true}
	}
	return &messages{provider: p, spec: p.endpoint.Models.Find(id)}, nil
}

// connect makes the SDK's client. What the SDK would take from the environment,
// keys above all, is the configuration's to say, and what it would tell telemetry
// is ours.
func (p *provider) connect() *sdk.Client {
	options := []option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithoutOpenTelemetry(), option.WithMaxRetries(0),
	}
	if p.endpoint.Client != nil {
		options = append(options, option.WithHTTPClient(p.endpoint.Client))
	}
	if p.endpoint.BaseURL != "" {
		options = append(options, option.WithBaseURL(baseURL(p.endpoint.BaseURL)))
	}
	for name, value := range p.endpoint.Headers {
		options = append(options, option.WithHeader(name, value))
	}
	client := sdk.NewClient(options...)
	return &client
}

// baseURL is the address that the SDK's paths, which begin with v1, go behind;
// people write it with and without.
func baseURL(s string) string {
	return strings.TrimSuffix(strings.TrimRight(s, "/"), "/v1") + "/"
}

// messages is one model.
type messages struct {
	*provider
	spec model.Spec
}

// Info returns the model's limits and levels.
func (m *messages) Info() effect.ModelInfo { return m.spec.Info(m.endpoint.Provider, API) }

// Stream answers at once, or by a batch when the request's options ask for a
// deferred answer.
func (m *messages) Stream(ctx context.Context, req effect.Request) effect.Events {
	if window, ok := deferral(req.Options.Deferred); ok {
		return m.submit(ctx, req, window)
	}
	return answer.Stream(ctx, req, m.base(), func(ctx context.Context, b *answer.Builder) error {
		return m.stream(ctx, b, req)
	})
}

// base is what all answers of the model have in common.
func (m *messages) base() answer.Base {
	return answer.Base{
		Provider: m.endpoint.Provider, API: API, Model: m.spec.ID,
		Address: cmp.Or(m.endpoint.BaseURL, vendor), Prices: m.spec.Prices,
	}
}

// call makes one request and returns its response, whose body the caller closes.
// body is nil for none; the error of a status that refuses is an *answer.Refusal.
func (m *messages) call(ctx context.Context, b *answer.Builder, method, path string, body any, extra ...option.RequestOption) (*http.Response, error) {
	options, err := m.credentials(ctx, b)
	if err != nil {
		return nil, err
	}
	var res *http.Response
	err = m.client().Execute(ctx, method, path, body, &res, append(options, extra...)...)
	if res != nil {
		b.Response(res.StatusCode, res.Header)
	}
	if e, ok := errors.AsType[*sdk.Error](err); ok && e.Response != nil {
		said, _ := io.ReadAll(e.Response.Body) // the SDK has read it: it is in memory
		return nil, answer.Refused(e.StatusCode, e.Response.Header, said)
	}
	if err == nil && res.StatusCode >= http.StatusMultipleChoices {
		// The SDK takes these for answers.
		defer func() { _ = res.Body.Close() }()
		said, _ := io.ReadAll(io.LimitReader(res.Body, maxReply)) // what there is of it
		return nil, answer.Refused(res.StatusCode, res.Header, said)
	}
	return res, err
}

// credentials are the options that sign a request. Servers that are compatible
// with the vendor's know its older header only.
func (m *messages) credentials(ctx context.Context, b *answer.Builder) ([]option.RequestOption, error) {
	key, err := b.Key(ctx, m.endpoint)
	if err != nil || key == "" {
		return nil, err
	}
	options := []option.RequestOption{option.WithAPIKey(key)}
	if m.endpoint.BaseURL != "" {
		options = append(options, option.WithHeader("X-Api-Key", key))
	}
	return options, nil
}
