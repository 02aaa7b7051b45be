// Package model finds models by their durable identity: the registry, and in
// the packages below it the providers (spec §0.7, §5.7).
//
// Import law: message, effect's interfaces and vendor SDKs; never store, op or
// engine.
package model

import (
	"errors"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

// Provider is one source of models.
type Provider interface {
	// Resolve returns the model with that id, ready to answer. An id that names
	// no usable model is an *effect.UnknownModel, whose Reason may say why; any
	// other error is a defect of the model's description or an input/output
	// failure.
	Resolve(modelID string) (effect.Model, error)
	// Models lists the ids that resolve without further ado. A provider may
	// resolve more than these.
	Models() []string
}

// Registry finds models among its providers; it implements effect.Models.
// Register everything before the first Resolve: Resolve may then be called from
// several goroutines.
type Registry struct {
	providers map[string]Provider
}

var _ effect.Models = (*Registry)(nil)

// NewRegistry returns a registry without providers.
func NewRegistry() *Registry { return &Registry{providers: map[string]Provider{}} }

// Register adds a provider, in the place of one that had its name before.
func (r *Registry) Register(name string, p Provider) { r.providers[name] = p }

// Resolve returns the model of ref. An unknown provider or model is an
// *effect.UnknownModel that names the listed models that it may stand for, unless its
// provider cannot be used at all.
func (r *Registry) Resolve(ref message.ModelRef) (effect.Model, error) {
	p, ok := r.providers[ref.Provider]
	if !ok {
		return nil, &effect.UnknownModel{Ref: ref, Reason: "there is no provider " + ref.Provider, Nearest: r.nearest(ref)}
	}
	m, err := p.Resolve(ref.ModelID)
	if unknown, ok := errors.AsType[*effect.UnknownModel](err); ok {
		told := &effect.UnknownModel{Ref: ref, Reason: unknown.Reason, Cure: unknown.Cure, Unusable: unknown.Unusable}
		switch {
		case unknown.Unusable:
		case unknown.Reason != "": // the provider is the one that was meant
			told.Nearest = (&Registry{providers: map[string]Provider{ref.Provider: p}}).nearest(ref)
		default:
			told.Nearest = r.nearest(ref)
		}
		return nil, told
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}
