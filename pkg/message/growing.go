package message

import (
	"slices"

	"github.com/drover-run/drover/internal/rawjson"
)

// growing is a block of a partial message.
type growing struct {
	block  Block  // as it started; as it is for good once done
	text   pages  // what it has grown to: its text, or its arguments' JSON
	extras []byte // members its start had that Block does not name, each after a comma
	grown  bool
	done   bool
}

func newGrowing(b Block) growing {
	g := growing{extras: extraMembers(b)}
	b.Raw = nil
	switch b.Type {
	case BlockText:
		g.text.add(b.Text)
	case BlockThinking:
		g.text.add(b.Thinking)
	}
	g.block = b
	return g
}

// appendQuoted appends the text of a raw string; a surrogate half at its start
// joins the one it grew to.
func (g *growing) appendQuoted(raw []byte) string {
	if !g.text.addQuoted(raw) {
		return "its delta is not a string"
	}
	g.grown = true
	return ""
}

// value returns the block as it is now.
func (g *growing) value() Block {
	b := g.block
	if g.grown && !g.done {
		switch b.Type {
		case BlockText:
			b.Text = g.text.String()
		case BlockThinking:
			b.Thinking = g.text.String()
		case BlockToolCall:
			b.Arguments = completeObject([]byte(g.text.String()))
		}
	}
	if len(g.extras) > 0 {
		raw := b.appendFields(nil)
		b.Raw = append(append(raw[:len(raw)-1], g.extras...), '}')
	}
	return b
}

// completeObject is the best reading of a prefix of a JSON object.
func completeObject(prefix []byte) []byte {
	if v := rawjson.Complete(prefix); rawjson.KindOf(v) == rawjson.Object {
		return v
	}
	return []byte("{}")
}

// extraMembers returns the members of a decoded block that its type's encoding
// would drop.
func extraMembers(b Block) []byte {
	known := blockFields(b.Type)
	var extras []byte
	// The block has been decoded: its text is an object.
	_ = rawjson.MembersFunc(b.Raw, func(m rawjson.Member) bool {
		key := string(keyText(m.Key))
		if key == "type" || slices.ContainsFunc(known, func(f field) bool { return f.name == key }) {
			return true
		}
		extras = append(append(extras, ','), b.Raw[m.Start:m.End]...)
		return true
	})
	return extras
}
