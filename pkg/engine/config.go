package engine

import (
	"context"
	"slices"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Configure changes parts of a lane's configuration; what is nil stays.
type Configure struct {
	Model           *message.ModelRef
	ThinkingLevel   *message.ThinkingLevel
	ActiveToolNames *[]string
}

func (c Configure) apply(cfg store.LaneConfiguration) store.LaneConfiguration {
	if c.Model != nil {
		cfg.Model = *c.Model
	}
	if c.ThinkingLevel != nil {
		cfg.ThinkingLevel = *c.ThinkingLevel
	}
	if c.ActiveToolNames != nil {
		cfg.ActiveToolNames = append([]string{}, *c.ActiveToolNames...)
	}
	return cfg
}

// Configure replaces the lane's configuration; an open operation keeps what its
// steps captured (spec §2.3, §5.1).
func (l *Lane) Configure(ctx context.Context, c Configure) error {
	delivery, err := onLine(ctx, l, func(m *store.Mutator) (*store.Ticket, error) { return l.configure(ctx, m, c) })
	await(ctx, delivery)
	return err
}

func (l *Lane) configure(ctx context.Context, m *store.Mutator, c Configure) (*store.Ticket, error) {
	previous, configured, err := l.recall.configuration(ctx, m, l.name)
	if err != nil {
		return nil, err
	}
	if !configured {
		previous = l.h.opts.Seed
	}
	next := c.apply(previous)
	if configured && sameConfiguration(previous, next) {
		return nil, nil
	}
	if _, err := m.Commit(store.Tx{store.LaneConfig(l.name).Set(next)}); err != nil {
		return nil, err
	}
	return l.h.events.enqueue(configEvents(l.name, previous, next)), nil
}

func sameConfiguration(a, b store.LaneConfiguration) bool {
	return a.Model == b.Model && a.ThinkingLevel == b.ThinkingLevel && slices.Equal(a.ActiveToolNames, b.ActiveToolNames)
}

// configEvents says what a configuration change changed, one property an event
// (spec §5.5).
func configEvents(lane string, previous, next store.LaneConfiguration) []op.Event {
	var events []op.Event
	add := func(property string, value, before []byte) {
		events = append(events, op.Event{Type: op.EventConfigUpdate, Lane: lane, Property: property, Value: value, Previous: before})
	}
	if previous.Model != next.Model {
		add("model", modelJSON(next.Model), modelJSON(previous.Model))
	}
	if previous.ThinkingLevel != next.ThinkingLevel {
		add("thinkingLevel", rawjson.Quote(string(next.ThinkingLevel)), rawjson.Quote(string(previous.ThinkingLevel)))
	}
	if !slices.Equal(previous.ActiveToolNames, next.ActiveToolNames) {
		add("activeTools", namesJSON(next.ActiveToolNames), namesJSON(previous.ActiveToolNames))
	}
	return events
}

func modelJSON(m message.ModelRef) []byte {
	dst := append([]byte(nil), `{"provider":`...)
	dst = rawjson.AppendQuote(dst, m.Provider)
	dst = append(dst, `,"modelId":`...)
	return append(rawjson.AppendQuote(dst, m.ModelID), '}')
}

func namesJSON(names []string) []byte {
	dst := []byte{'['}
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = rawjson.AppendQuote(dst, name)
	}
	return append(dst, ']')
}
