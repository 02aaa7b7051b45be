package catalogue

import (
	_ "embed" // the file
	"encoding/json"
	"fmt"
	"slices"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
)

//go:embed models.json
var text string

// file is the form of models.json.
type file struct {
	AsOf    string            `json:"asOf"`
	Vendors map[string]vendor `json:"vendors"` // "" holds what is assumed of all others
}

type vendor struct {
	Assumed described   `json:"assumed"`
	Models  []described `json:"models"`

	asOf string
}

type described struct {
	ID            string                  `json:"id"`
	Name          string                  `json:"name"`
	Aliases       []string                `json:"aliases"`
	ContextWindow int64                   `json:"contextWindow"`
	MaxTokens     int64                   `json:"maxTokens"`
	Thinking      []message.ThinkingLevel `json:"thinking"`
	Images        bool                    `json:"images"`
	Prices        prices                  `json:"prices"`
	Source        string                  `json:"source"`
	Verified      string                  `json:"verified"` // the day of the comparison
	Note          string                  `json:"note"`
}

type prices struct {
	Input        float64  `json:"input"`
	Output       float64  `json:"output"`
	CacheRead    float64  `json:"cacheRead"`
	CacheWrite   *float64 `json:"cacheWrite"`   // nil: as input
	CacheWrite1h *float64 `json:"cacheWrite1h"` // nil: as cacheWrite
	LongAbove    int64    `json:"longAbove"`    // tokens of the prompt
	Long         *prices  `json:"long"`
}

// read returns what the file says of a vendor.
func read(name string) vendor {
	f, err := parse(text)
	if err != nil {
		panic("unreachable: " + err.Error()) // the file is part of the binary, and tested
	}
	v, ok := f.Vendors[name]
	if !ok {
		v = f.Vendors[""]
	}
	v.asOf = f.AsOf
	return v
}

func parse(text string) (file, error) {
	var f file
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return f, fmt.Errorf("decode the catalogue of models: %w", err)
	}
	return f, nil
}

// find looks for a model by its id or another name of it.
func (v vendor) find(id string) (Entry, bool) {
	for _, m := range v.Models {
		if m.ID == id || slices.Contains(m.Aliases, id) {
			return m.entry(v.asOf), true
		}
	}
	return Entry{}, false
}

func (d described) entry(asOf string) Entry {
	if d.Verified != "" {
		asOf = d.Verified
	}
	return Entry{
		Spec: model.Spec{
			ID: d.ID, Name: d.Name, ContextWindow: d.ContextWindow, MaxTokens: d.MaxTokens,
			Thinking: d.Thinking, Images: d.Images, Prices: d.Prices.resolve(),
		},
		Source: d.Source, AsOf: asOf, Verified: d.Verified != "", Note: d.Note,
	}
}

// resolve fills in the prices that go without saying.
func (p prices) resolve() model.Prices {
	full := model.Prices{Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite: p.Input}
	if p.CacheWrite != nil {
		full.CacheWrite = *p.CacheWrite
	}
	full.CacheWrite1h = full.CacheWrite
	if p.CacheWrite1h != nil {
		full.CacheWrite1h = *p.CacheWrite1h
	}
	if p.Long != nil {
		long := p.Long.resolve()
		full.Long, full.LongAbove = &long, p.LongAbove
	}
	return full
}
