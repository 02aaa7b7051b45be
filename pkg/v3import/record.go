package v3import

import "github.com/drover-run/drover/internal/rawjson"

// kind says what becomes of a record.
type kind uint8

const (
	// These stay entries.
	kindMessage       kind = iota // message
	kindCustomMessage             // custom_message: a message of role custom
	kindCompaction                // compaction
	kindSummary                   // branch_summary
	kindCustom                    // custom
	kindEdit                      // context_edit: custom entry pi.context_edit
	kindWhole                     // anything else: custom entry pi.v3.TYPE holding the record
	kindRaw                       // an unreadable line: custom entry pi.v3.quarantine
	// These leave the tree.
	kindLabel   // label
	kindName    // session_info
	kindSetting // model_change, thinking_level_change, active_tools_change
	kindUsage   // usage
	kindLeaf    // leaf
	kindLost    // an unreadable line
	kindCopy    // an identical copy of an earlier record
)

func (k kind) kept() bool { return k <= kindRaw }

func kindOf(typ string) kind {
	switch typ {
	case "message":
		return kindMessage
	case "custom_message":
		return kindCustomMessage
	case "compaction":
		return kindCompaction
	case "branch_summary":
		return kindSummary
	case "custom":
		return kindCustom
	case "context_edit":
		return kindEdit
	case "label":
		return kindLabel
	case "session_info":
		return kindName
	case "model_change", "thinking_level_change", "active_tools_change":
		return kindSetting
	case "usage":
		return kindUsage
	case "leaf":
		return kindLeaf
	}
	return kindWhole
}

// known says that a type needs no warning.
func known(typ string) bool { return kindOf(typ) != kindWhole }

type flags uint8

const (
	flagPlain   flags = 1 << iota // a message record without further members
	flagBadUTF8                   // bytes that are no UTF-8
	flagSystem                    // a message of role system
	flagRename                    // a message whose role is to become custom
	flagTail                      // contributes to a retained tail
	flagOwnTail                   // a compaction with a tail of its own
	flagNoTime                    // ts is still unknown
)

func (f flags) has(x flags) bool { return f&x != 0 }

// none is the index of no record.
const none = -1

// record is what the index knows of one record.
type record struct {
	off    int64 // of the object in the file
	line   int64
	ts     int64 // Unix ms
	size   int32 // of the object
	body   int32 // where the message starts in it, of message records
	length int32 // of the message
	slot   int32 // place in the list its writer held, the header being 0
	parent int32 // the record it hangs on, none for a root
	ref    int32 // the record it names: kept range, target or source; none
	kind   kind
	flags  flags
	id     string // of the entry it becomes
}

// links are the names by which a record points at others, needed until they are
// resolved.
type links struct {
	id     string // "": none
	parent string
	ref    string
	how    how
}

// how tells the cases of an absent link apart.
type how uint8

const (
	parentGiven how = 1 << iota // parentId is a non-empty name
	parentEmpty                 // parentId is "" or null
	parentBlank                 // parentId is ""
	refGiven                    // ref is a name
	refNull                     // the referring member is null
	refIndex                    // ref is a number in decimal: a place in the writer's list
)

func (h how) has(x how) bool { return h&x != 0 }

// name reads a member that names a record: text as it is, a number or anything
// else by its JSON text. null, "" and an absent member are no name.
func name(raw []byte) (s string, odd bool) {
	if len(raw) == 0 || raw[0] == 'n' {
		return "", false
	}
	if raw[0] == '"' {
		s, _ := rawjson.Unquote(raw)
		return s, false
	}
	return string(raw), true
}
