package engine

import (
	"slices"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

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
