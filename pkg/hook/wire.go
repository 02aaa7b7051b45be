package hook

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

// event is the JSON text of an event under construction, without its last brace.
// What it holds of the session is spliced byte for byte.
type event []byte

// event begins the event of a hook.
func (r runner) event(at place) event {
	e := event(`{"hook":`)
	e = rawjson.AppendQuote(e, string(r.Point))
	return e.text("lane", at.lane).text("runId", at.runID).text("sessionId", r.SessionID).text("cwd", r.CWD)
}

func (e event) key(name string) event {
	return append(rawjson.AppendQuote(append(e, ','), name), ':')
}

func (e event) text(name, value string) event { return rawjson.AppendQuote(e.key(name), value) }

// optional is text that is left out when it is empty.
func (e event) optional(name, value string) event {
	if value == "" {
		return e
	}
	return e.text(name, value)
}

func (e event) integer(name string, n int64) event { return rawjson.AppendInt(e.key(name), n) }

func (e event) boolean(name string, b bool) event {
	if b {
		return append(e.key(name), "true"...)
	}
	return append(e.key(name), "false"...)
}

// raw is a value as it is; one that is not there is left out.
func (e event) raw(name string, value json.RawMessage) event {
	if value == nil {
		return e
	}
	return append(e.key(name), value...)
}

func (e event) messages(name string, all []message.Message) event {
	e = append(e.key(name), '[')
	for i, m := range all {
		if i > 0 {
			e = append(e, ',')
		}
		e = append(e, m...)
	}
	return append(e, ']')
}

func (e event) blocks(name string, all []message.Block) event {
	e = append(e.key(name), '[')
	for i, b := range all {
		if i > 0 {
			e = append(e, ',')
		}
		// A block of any type has a form.
		next, _ := b.AppendJSON(e)
		e = next
	}
	return append(e, ']')
}

func (e event) model(m effect.ModelInfo) event {
	e = append(e.key("model"), '{')
	e = append(rawjson.AppendQuote(append(e, `"provider":`...), m.Ref.Provider), `,"modelId":`...)
	e = rawjson.AppendQuote(e, m.Ref.ModelID)
	e = e.text("api", m.API).integer("contextWindow", m.ContextWindow).integer("maxTokens", m.MaxTokens)
	return append(e, '}')
}

// headers are written in the order of their names.
func (e event) headers(all map[string]string) event {
	if all == nil {
		return e
	}
	e = append(e.key("headers"), '{')
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if i > 0 {
			e = append(e, ',')
		}
		e = rawjson.AppendQuote(append(rawjson.AppendQuote(e, name), ':'), all[name])
	}
	return append(e, '}')
}

// line is the whole event, as a program reads it.
func (e event) line() []byte { return append(e, "}\n"...) }
