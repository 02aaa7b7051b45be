package model

import (
	"math"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

// Spec describes one model of a provider: what the engine asks of it, and what
// a request and its bill are made with. Token counts are tokens.
type Spec struct {
	ID            string
	Name          string // for people
	ContextWindow int64
	MaxTokens     int64
	// Thinking lists the supported levels besides off.
	Thinking []message.ThinkingLevel
	// Images tells whether the model takes images.
	Images bool
	Prices Prices
	// Assumed marks a model that nobody described: defaults stand in.
	Assumed bool
}

// Info is what the engine needs to know of the model.
func (s Spec) Info(provider, api string) effect.ModelInfo {
	return effect.ModelInfo{
		Ref: message.ModelRef{Provider: provider, ModelID: s.ID}, API: api,
		ContextWindow: s.ContextWindow, MaxTokens: s.MaxTokens, Thinking: s.Thinking, Images: s.Images,
	}
}

// Prices are US dollars for a million tokens.
type Prices struct {
	Input, Output, CacheRead, CacheWrite, CacheWrite1h float64
	// Long stands in for all of them when a prompt, its cached part included, has
	// more than LongAbove tokens; nil when its length changes nothing.
	Long      *Prices
	LongAbove int64
}

// Times are the prices of what is sold for a share of them, such as a batch.
func (p Prices) Times(share float64) Prices {
	for _, price := range []*float64{&p.Input, &p.Output, &p.CacheRead, &p.CacheWrite, &p.CacheWrite1h} {
		*price *= share
	}
	if p.Long != nil {
		long := p.Long.Times(share)
		p.Long = &long
	}
	return p
}

// Cost is the price of a usage. Cache writes that live an hour are part of the
// usage's cache writes and have a price of their own.
func (p Prices) Cost(u message.Usage) message.Cost {
	const million = 1e6
	if p.Long != nil && u.Input+u.CacheRead+u.CacheWrite > p.LongAbove {
		p = *p.Long
	}
	hour := int64(0)
	if u.CacheWrite1h != nil {
		hour = min(*u.CacheWrite1h, u.CacheWrite)
	}
	c := message.Cost{
		Input:      decimal(float64(u.Input) * p.Input / million),
		Output:     decimal(float64(u.Output) * p.Output / million),
		CacheRead:  decimal(float64(u.CacheRead) * p.CacheRead / million),
		CacheWrite: decimal((float64(u.CacheWrite-hour)*p.CacheWrite + float64(hour)*p.CacheWrite1h) / million),
	}
	c.Total = decimal(c.Input + c.Output + c.CacheRead + c.CacheWrite)
	return c
}

// decimal is an amount without what binary arithmetic leaves behind its twelfth
// decimal: a tenth and a tenth and a tenth are three tenths.
func decimal(dollars float64) float64 {
	const places = 1e12
	return math.Round(dollars*places) / places
}

// Catalogue knows the models of one provider.
type Catalogue interface {
	// Find describes the model of that id; of one that nobody described it makes
	// an Assumed description.
	Find(id string) Spec
	// IDs lists the models that are described, sorted.
	IDs() []string
}
