package store

import "github.com/drover-run/drover/internal/rawjson"

// Verdict is what the payloads of one record show on their own. It only ever
// vouches: what is not sound at once is judged in full by Verify.
type Verdict struct {
	// Sound: Verify has nothing against the payloads.
	Sound bool
	// Calls are the ids of the tool calls that a sound message makes.
	Calls []string
	// Answers tells that a sound message is a tool result, of the call CallID.
	Answers bool
	CallID  string
}

// JudgeEntry judges an entry by its type and payload.
func JudgeEntry(e *Entry) Verdict {
	switch e.Type {
	case TypeMessage:
		if g, sound := glanceAt(e.Payload); sound {
			return g.verdict(e.Payload)
		}
	case TypeCustom:
		return Verdict{Sound: validObject(e.Payload) == nil && rawjson.ValidUTF8(e.Payload) < 0}
	}
	return Verdict{}
}

// JudgeMessage judges the payload of a message entry at the beginning of text,
// and tells where it ends when it is sound.
func JudgeMessage(text []byte) (v Verdict, end int) {
	g, sound := glanceInto(text)
	if !sound {
		return Verdict{}, 0
	}
	return g.verdict(text[:g.i]), g.i
}

// verdict is that on a message whose structure is sound.
func (g *glance) verdict(payload []byte) Verdict {
	v := Verdict{Sound: rawjson.ValidUTF8(payload) < 0, Calls: g.calls}
	if v.Answers = string(g.role) == `"toolResult"`; v.Answers {
		v.CallID, _ = rawjson.Unquote(g.callID) // it is a string
	}
	return v
}
