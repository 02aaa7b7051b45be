// Package catalogue describes models: what a dated file, which is part of the
// binary, says of the vendors' models, and what a configuration adds to that or
// puts in its place.
//
// Import law: message, model and the standard library.
package catalogue

import (
	"maps"
	"slices"
	"sync"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
)

// The vendors that the file describes models of; any other name is a vendor of
// whose models nothing is known.
const (
	Anthropic = "anthropic"
	OpenAI    = "openai"
)

// Configured is the source of a description that the configuration gave.
const Configured = "configuration"

// Entry is what is known of one model, and where that comes from.
type Entry struct {
	model.Spec
	// Source is a page of the vendor, or Configured when the configuration had a
	// word in it; "" for an Assumed description.
	Source string
	// AsOf is the day of the facts, YYYY-MM-DD; "" when they are not the file's.
	AsOf string
	// Verified tells whether they were compared with the vendor's own page.
	Verified bool
	// Note says what is less sure than the rest, or special; mostly "".
	Note string
}

// Override is what a configuration says of a model; nil leaves a field alone.
type Override struct {
	Name          string // "" leaves it alone
	ContextWindow *int64 // tokens
	MaxTokens     *int64 // tokens
	Thinking      *[]message.ThinkingLevel
	Images        *bool
	Prices        PriceOverride
}

// PriceOverride changes prices, US dollars for a million tokens. What is given
// counts for prompts of any length.
type PriceOverride struct {
	Input, Output, CacheRead, CacheWrite, CacheWrite1h *float64
}

// Catalogue describes the models of one provider. It reads the file on first use
// and may be used from several goroutines.
type Catalogue struct {
	described func() vendor
	overrides map[string]Override
}

var _ model.Catalogue = (*Catalogue)(nil)

// New returns the catalogue of a provider that offers a vendor's models, "" for
// none that are known, with the configuration's own descriptions by model id.
func New(vendorName string, overrides map[string]Override) *Catalogue {
	return &Catalogue{
		described: sync.OnceValue(func() vendor { return read(vendorName) }),
		overrides: overrides,
	}
}

// IDs lists the models that are described, sorted.
func (c *Catalogue) IDs() []string {
	ids := slices.Collect(maps.Keys(c.overrides))
	for _, m := range c.described().Models {
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Find describes the model of that id; of one that nobody described it makes an
// Assumed description.
func (c *Catalogue) Find(id string) model.Spec { return c.Entry(id).Spec }

// Entry is Find, with the source of the description. An id with a date at its end
// is the snapshot of the model without it, unless it is described itself.
func (c *Catalogue) Entry(id string) Entry {
	v := c.described()
	e, ok := v.find(id)
	if !ok {
		e, ok = v.find(withoutDate(id))
	}
	if !ok {
		e = v.Assumed.entry("")
		e.Assumed = true
	}
	e.ID = id
	if e.Name == "" {
		e.Name = id
	}
	if o, ok := c.overrides[id]; ok {
		o.apply(&e)
	}
	return e
}

// apply puts what is configured in the place of what was known. A model is not
// assumed any more once both of its limits are given.
func (o Override) apply(e *Entry) {
	if o.Name != "" {
		e.Name = o.Name
	}
	set(&e.ContextWindow, o.ContextWindow)
	set(&e.MaxTokens, o.MaxTokens)
	set(&e.Thinking, o.Thinking)
	set(&e.Images, o.Images)
	e.Prices = o.Prices.over(e.Prices)
	if o.ContextWindow != nil && o.MaxTokens != nil {
		e.Assumed = false
	}
	e.MaxTokens = min(e.MaxTokens, e.ContextWindow)
	e.Source, e.Verified = Configured, false
}

// over returns the prices with those that are given in their place, also in the
// prices of long prompts. Where none were known, the cache costs what input does.
func (o PriceOverride) over(p model.Prices) model.Prices {
	if o.Input != nil && p == (model.Prices{}) {
		p = model.Prices{CacheRead: *o.Input, CacheWrite: *o.Input, CacheWrite1h: *o.Input}
	}
	set(&p.Input, o.Input)
	set(&p.Output, o.Output)
	set(&p.CacheRead, o.CacheRead)
	set(&p.CacheWrite, o.CacheWrite)
	if o.CacheWrite != nil && o.CacheWrite1h == nil {
		p.CacheWrite1h = *o.CacheWrite
	}
	set(&p.CacheWrite1h, o.CacheWrite1h)
	if p.Long != nil && o != (PriceOverride{}) {
		long := o.over(*p.Long)
		p.Long = &long
	}
	return p
}

func set[T any](to *T, given *T) {
	if given != nil {
		*to = *given
	}
}

// withoutDate cuts a date off the end of a model id: -YYYYMMDD or -YYYY-MM-DD.
func withoutDate(id string) string {
	for _, form := range []string{"-00000000", "-0000-00-00"} {
		if start := len(id) - len(form); start > 0 && shaped(id[start:], form) {
			return id[:start]
		}
	}
	return id
}

// shaped reports whether a text has digits where a form has zeros, and the form's
// own characters elsewhere.
func shaped(s, form string) bool {
	for i := range len(form) {
		digit := '0' <= s[i] && s[i] <= '9'
		if form[i] == '0' && !digit || form[i] != '0' && s[i] != form[i] {
			return false
		}
	}
	return true
}
