package v3import

import (
	"bytes"

	"github.com/drover-run/drover/internal/rawjson"
)

// key names a member that this package looks at.
type key uint8

const (
	keyOther key = iota
	keyType
	keyID
	keyParent
	keyTime
	keyMessage
	keyUsage
	keyTarget
	keyLabel
	keyName
	keyFirstKept
	keyFirstIndex
	keyTail
	keySystem
	keySummary
	keyTokens
	keyDetails
	keyFromHook
	keyFromID
	keyCustomType
	keyContent
	keyDisplay
	keyData
	keyReplacement
	keyVersion
	keyCWD
	keyParentSession
	keyBranchedFrom
	keyKind
	keySeq
	keyRole
	keyStopReason
	numKeys
)

// keyOf classifies a quoted member name.
func keyOf(quoted []byte) key {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') >= 0 {
		s, err := rawjson.Unquote(quoted)
		if err != nil {
			return keyOther
		}
		inner = []byte(s)
	}
	switch string(inner) {
	case "type":
		return keyType
	case "id":
		return keyID
	case "parentId":
		return keyParent
	case "timestamp":
		return keyTime
	case "message":
		return keyMessage
	case "usage":
		return keyUsage
	case "targetId":
		return keyTarget
	case "label":
		return keyLabel
	case "name":
		return keyName
	case "firstKeptEntryId":
		return keyFirstKept
	case "firstKeptEntryIndex":
		return keyFirstIndex
	case "retainedTail":
		return keyTail
	case "systemMessage":
		return keySystem
	case "summary":
		return keySummary
	case "tokensBefore":
		return keyTokens
	case "details":
		return keyDetails
	case "fromHook":
		return keyFromHook
	case "fromId":
		return keyFromID
	}
	return rareKeyOf(inner)
}

func rareKeyOf(inner []byte) key {
	switch string(inner) {
	case "customType":
		return keyCustomType
	case "content":
		return keyContent
	case "display":
		return keyDisplay
	case "data":
		return keyData
	case "replacement":
		return keyReplacement
	case "version":
		return keyVersion
	case "cwd":
		return keyCWD
	case "parentSession":
		return keyParentSession
	case "branchedFrom":
		return keyBranchedFrom
	case "kind":
		return keyKind
	case "seq":
		return keySeq
	case "role":
		return keyRole
	case "stopReason":
		return keyStopReason
	}
	return keyOther
}

// keySet is a set of keys.
type keySet uint64

func set(keys ...key) (s keySet) {
	for _, k := range keys {
		s |= 1 << k
	}
	return s
}

func (s keySet) has(k key) bool { return s>>k&1 != 0 }

type span struct{ lo, hi int }

// object is one record as it stands in a line: where the members are that this
// package looks at, and those of its message. Of duplicate members the last
// counts, as the agent's own reader has it.
type object struct {
	text     []byte // the line, or as much of it as is known
	lo, hi   int    // the object's place in text
	members  [numKeys]span
	message  [numKeys]span // of the message, when that is an object
	seen     keySet
	twice    keySet // members that occur more than once
	inMsg    keySet
	visitTop func(name []byte, i int) (int, *rawjson.SyntaxError)
	visitMsg func(name []byte, i int) (int, *rawjson.SyntaxError)
}

func newObject() *object {
	o := &object{}
	o.visitTop, o.visitMsg = o.topMember, o.messageMember
	return o
}

// parse reads the object that starts at text[i] and returns the index after it.
// Every byte is checked, and looked at once.
func (o *object) parse(text []byte, i int) (int, *rawjson.SyntaxError) {
	o.text, o.lo = text, i
	o.seen, o.twice, o.inMsg = 0, 0, 0
	end, err := walk(text, i, o.visitTop)
	o.hi = end
	return end, err
}

func (o *object) topMember(name []byte, i int) (end int, err *rawjson.SyntaxError) {
	k := keyOf(name)
	if k == keyMessage {
		o.inMsg = 0
	}
	if k == keyMessage && i < len(o.text) && o.text[i] == '{' {
		end, err = walk(o.text, i, o.visitMsg)
	} else {
		end, err = rawjson.Skip(o.text, i)
	}
	o.twice |= o.seen & (1 << k)
	o.seen |= 1 << k
	o.members[k] = span{i, end}
	return end, err
}

func (o *object) messageMember(name []byte, i int) (int, *rawjson.SyntaxError) {
	k := keyOf(name)
	end, err := rawjson.Skip(o.text, i)
	o.inMsg |= 1 << k
	o.message[k] = span{i, end}
	return end, err
}

// bytes is the object's own text.
func (o *object) bytes() []byte { return o.text[o.lo:o.hi] }

// raw is the value of a member, nil when there is none.
func (o *object) raw(k key) []byte {
	if !o.seen.has(k) {
		return nil
	}
	m := o.members[k]
	return o.text[m.lo:m.hi]
}

// msg is the value of a member of the message, nil when there is none.
func (o *object) msg(k key) []byte {
	if !o.inMsg.has(k) {
		return nil
	}
	m := o.message[k]
	return o.text[m.lo:m.hi]
}

// textOf decodes a string value; false for anything else.
func textOf(raw []byte) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	s, err := rawjson.Unquote(raw)
	return s, err == nil
}

// walk reads the object at b[i], handing each name and the place of its value to
// visit, which returns the place after it.
func walk(b []byte, i int, visit func(name []byte, i int) (int, *rawjson.SyntaxError)) (int, *rawjson.SyntaxError) {
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1, nil
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return i, syntaxError(b, i, "expected a member name")
		}
		end, err := rawjson.Skip(b, i)
		if err != nil {
			return end, err
		}
		name := b[i:end]
		if i = skipSpace(b, end); i >= len(b) || b[i] != ':' {
			return i, syntaxError(b, i, "expected a colon after the member name")
		}
		if i, err = visit(name, skipSpace(b, i+1)); err != nil {
			return i, err
		}
		i = skipSpace(b, i)
		switch {
		case i < len(b) && b[i] == ',':
			i = skipSpace(b, i+1)
		case i < len(b) && b[i] == '}':
			return i + 1, nil
		default:
			return i, syntaxError(b, i, "expected a comma or the end of the object")
		}
	}
}

func syntaxError(b []byte, i int, msg string) *rawjson.SyntaxError {
	if i >= len(b) {
		msg = "unexpected end of text"
	}
	return &rawjson.SyntaxError{Offset: i, Msg: msg}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}
