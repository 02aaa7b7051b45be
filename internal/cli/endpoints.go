package cli

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/model"
	"github.com/drover-run/drover/pkg/model/anthropic"
	"github.com/drover-run/drover/pkg/model/catalogue"
	"github.com/drover-run/drover/pkg/model/openai"
	"github.com/drover-run/drover/pkg/model/scripted"
	"github.com/drover-run/drover/pkg/model/transport"
)

// endpoint is a provider that is reached over the network, and what is known of
// its models.
type endpoint struct {
	name       string
	config     providerConfig
	configured bool // the configuration has a word in it
	models     *catalogue.Catalogue
	key        func(context.Context) (string, error) // nil when none is needed
	obstacle   obstacle
}

// obstacle is why no request can be made to an endpoint, and what a person can do
// about it; empty when one can.
type obstacle struct{ what, cure string }

// newEndpoints are those that every binary knows and those of the configuration,
// by name.
func (f *factory) newEndpoints() ([]*endpoint, error) {
	c, err := f.config()
	if err != nil {
		return nil, err
	}
	names := append(slices.Collect(maps.Keys(c.providers)), catalogue.Anthropic, catalogue.OpenAI)
	slices.Sort(names)
	var all []*endpoint
	for _, name := range slices.Compact(names) {
		all = append(all, f.newEndpoint(c, name))
	}
	return all, nil
}

func (f *factory) newEndpoint(c *config, name string) *endpoint {
	p, configured := c.providers[name]
	if !configured {
		p.API = vendorAPI(name)
	}
	overrides := make(map[string]catalogue.Override, len(p.Models))
	for id, m := range p.Models {
		overrides[id] = m.override()
	}
	e := &endpoint{name: name, config: p, configured: configured, models: catalogue.New(vendorOf(p.API), overrides)}
	e.key, e.obstacle = f.key(c, name, p)
	if wrong := p.misaddressed(name); wrong != "" {
		e.obstacle = obstacle{what: wrong}
	}
	return e
}

// unlistedProviders are those that requests can be made to although none of their
// models is described.
func (f *factory) unlistedProviders() []string {
	var names []string
	endpoints, _ := f.endpoints() // whoever asks has listed the models before
	for _, e := range endpoints {
		if e.obstacle.what == "" && len(e.models.IDs()) == 0 {
			names = append(names, e.name)
		}
	}
	return names
}

// vendorOf is whose models an endpoint offers: one that speaks a vendor's own
// interface stands before that vendor, the others offer anybody's.
func vendorOf(api string) string {
	switch api {
	case apiMessages:
		return catalogue.Anthropic
	case apiResponses:
		return catalogue.OpenAI
	}
	return ""
}

// newModels registers the providers of this binary. What reaches an endpoint is
// made when one of its models is first asked for.
func (f *factory) newModels() effect.Models {
	registry := model.NewRegistry()
	registry.Register(scripted.Name, scripted.New(scripted.Options{StateDir: f.env("DROVER_SCRIPT_STATE")}))
	// Whoever runs a model has read the configuration before.
	endpoints, _ := f.endpoints()
	for _, e := range endpoints {
		registry.Register(e.name, &remote{
			endpoint: e,
			provider: sync.OnceValues(func() (model.Provider, error) { return f.reach(e) }),
			guess:    f.tellGuess,
			guessed:  map[string]bool{},
		})
	}
	return registry
}

// reach makes what sends requests to an endpoint. An *effect.UnknownModel says why
// that cannot work.
func (f *factory) reach(e *endpoint) (model.Provider, error) {
	trace, err := f.trace()
	if err != nil {
		return nil, err
	}
	client, err := transport.New(transport.Options{CAFile: e.config.CAFile, Idle: e.config.timeout, Trace: trace})
	if err != nil {
		return nil, &effect.UnknownModel{Reason: err.Error(), Unusable: true}
	}
	at := model.Endpoint{
		Provider: e.name, BaseURL: e.config.BaseURL, Key: e.key, Headers: e.config.Headers,
		Client: client, Models: e.models,
	}
	switch e.config.API {
	case apiMessages:
		return anthropic.New(at), nil
	case apiResponses:
		return openai.New(at), nil
	}
	return openai.NewCompatible(at, e.config.Quirks.quirks()), nil
}

// openTrace opens the file that requests to models are written to; nil for none.
func (f *factory) openTrace() (*transport.Trace, error) {
	if f.flags.traceHTTP == "" {
		return nil, nil
	}
	trace, err := transport.OpenTrace(f.flags.traceHTTP)
	f.traced = trace
	return trace, err
}

// closeTrace tells when the trace is not all that was said.
func (f *factory) closeTrace() {
	if f.traced == nil {
		return
	}
	if err := f.traced.Close(); err != nil {
		if out, bad := f.out(); bad == nil {
			out.warn("trace_incomplete", "the trace is not complete: %v", err)
		}
	}
}

// remote is the provider of an endpoint.
type remote struct {
	*endpoint
	provider func() (model.Provider, error)
	guess    func(provider string, e catalogue.Entry, near string)

	mu      sync.Mutex
	guessed map[string]bool // by model id
}

// Models lists the models that are described.
func (r *remote) Models() []string { return r.models.IDs() }

// Resolve returns any model of an endpoint that can be reached, and tells once
// when nothing is known of it.
func (r *remote) Resolve(id string) (effect.Model, error) {
	if r.obstacle.what != "" {
		return nil, &effect.UnknownModel{Reason: r.obstacle.what, Cure: r.obstacle.cure, Unusable: true}
	}
	p, err := r.provider()
	if err != nil {
		return nil, err
	}
	m, err := p.Resolve(id)
	if err == nil {
		r.tell(id)
	}
	return m, err
}

func (r *remote) tell(id string) {
	e := r.models.Entry(id)
	if !e.Assumed {
		return
	}
	r.mu.Lock()
	first := !r.guessed[id]
	r.guessed[id] = true
	r.mu.Unlock()
	if !first {
		return
	}
	r.guess(r.name, e, meant(id, r.models.IDs()))
}

// tellGuess warns of a model that requests are made with in the dark.
func (f *factory) tellGuess(provider string, e catalogue.Entry, near string) {
	out, err := f.out()
	if err != nil {
		return // who asks for a model has found that out before
	}
	question := ""
	if near != "" {
		question = "; did you mean " + near + "?"
	}
	out.note("warning: nothing is known of %s/%s: a window of %d tokens, %d tokens of output and no prices are assumed; providers.%s.models can say better%s",
		escapeLine(provider), escapeLine(e.ID), e.ContextWindow, e.MaxTokens, escapeLine(provider), escapeLine(question))
}
