package modeltest

import "github.com/drover-run/drover/pkg/message"

// writer writes a script.
type writer struct{ s Script }

func script(stop message.StopReason) *writer {
	return &writer{Script{ID: "resp_1", Model: "test-model-2026", Stop: stop, Usage: message.Usage{Input: 11, Output: 7}}}
}

func (w *writer) step(op Op, of Step, text string) *writer {
	of.Op, of.Text = op, text
	w.s.Steps = append(w.s.Steps, of)
	return w
}

// open opens the next block and returns what its other steps have in common.
func (w *writer) open(of Step, data string) Step {
	of.Block = 0
	for _, s := range w.s.Steps {
		if s.Op == Open {
			of.Block++
		}
	}
	w.step(Open, of, data)
	return of
}

func (w *writer) whole(of Step, deltas ...string) *writer {
	of = w.open(of, "")
	for _, d := range deltas {
		w.step(Delta, of, d)
	}
	return w.step(Close, of, "")
}

func (w *writer) text(deltas ...string) *writer { return w.whole(textStep, deltas...) }

func (w *writer) thinking(signature string, deltas ...string) *writer {
	of := w.open(thinkingStep, "")
	for _, d := range deltas {
		w.step(Delta, of, d)
	}
	if signature != "" {
		w.step(Sign, of, signature)
	}
	return w.step(Close, of, "")
}

func (w *writer) redacted(data string) *writer {
	of := thinkingStep
	of.Redacted = true
	of = w.open(of, data)
	return w.step(Close, of, "")
}

func (w *writer) call(id, name string, deltas ...string) *writer {
	return w.whole(callStep(id, name), deltas...)
}

var (
	textStep     = Step{Type: message.BlockText}
	thinkingStep = Step{Type: message.BlockThinking}
)

func callStep(id, name string) Step {
	return Step{Type: message.BlockToolCall, ID: id, Name: name}
}

// plain is the shortest answer.
func plain() Script { return script(message.StopStop).text("Hello", " there").s }

// full is an answer with all that the kit can express.
func full(k Kit) Script {
	w := script(message.StopToolUse)
	if k.has(Thinking) {
		signature := ""
		if k.has(Signatures) {
			signature = "c2ln/+=="
		}
		w.thinking(signature, "Let me", " think.")
	}
	return w.text("I will ", "look.").
		call("call_a", "ls", `{"path"`, `:"/tmp"}`).
		call("call_b", "cat", `{"path":"x","n":1.0}`).s
}
