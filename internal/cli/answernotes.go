package cli

import (
	"fmt"
	"slices"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
)

// answerNotes are what an event says of an answer that its text does not show:
// that it is not the one that was asked for, or not all of it.
func answerNotes(e engine.Event) []string {
	switch e.Type {
	case op.EventMessageEnd:
		return requestNotes(e.Message)
	case op.EventRunEnd:
		// Only here is it sure that the limit was the answer's own: one that the
		// context left no room for is asked for again.
		if e.Outcome == op.Completed && e.Message.StopReason() == message.StopLength {
			return []string{cutOff(e.Message)}
		}
	}
	return nil
}

func requestNotes(m message.Message) (notes []string) {
	if wanted, used, ok := message.ClampedThinking(m); ok {
		notes = append(notes, fmt.Sprintf("%s has no thinking level %s; the request asked for %s", answeredBy(m), escapeLine(string(wanted)), escapeLine(string(used))))
	}
	if n := message.OmittedImages(m); n > 0 {
		notes = append(notes, fmt.Sprintf("%s takes no images; the request left out %d", answeredBy(m), n))
	}
	return notes
}

func cutOff(m message.Message) string {
	note := "the answer was cut off at its output limit"
	if u, ok := m.Usage(); ok && u.Output > 0 {
		note += fmt.Sprintf(", %d tokens", u.Output)
	}
	return note + "; another prompt can ask for the rest"
}

// answeredBy names the model of an answer.
func answeredBy(m message.Message) string {
	provider, _ := rawjson.GetString(m, "provider")
	model, _ := rawjson.GetString(m, "model")
	return escapeLine(provider + "/" + model)
}

// answerTeller tells each note once: what keeps a model from doing as it is asked
// does so for every request of a run.
type answerTeller struct {
	out  *printer
	told []string
}

// tell says what is new in an event, each note behind the given words.
func (t *answerTeller) tell(e engine.Event, before string) {
	for _, note := range answerNotes(e) {
		if !slices.Contains(t.told, note) {
			t.told = append(t.told, note)
			t.out.note("%s%s", before, note)
		}
	}
}
