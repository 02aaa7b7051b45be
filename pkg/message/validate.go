package message

// FieldError says which field of a message is not what it must be.
type FieldError struct {
	Field string // path of the field, as `content[2].data`; empty for the message itself
	Msg   string
}

func (e *FieldError) Error() string {
	if e.Field == "" {
		return "message " + e.Msg
	}
	return "message field " + e.Field + " " + e.Msg
}

// UTF8Error reports input that is not UTF-8.
type UTF8Error struct {
	Offset int // of the first byte that is not UTF-8
}

func (e *UTF8Error) Error() string { return "invalid UTF-8" }

// Validate checks what acceptance requires of a message (spec §0.8): an object
// of a known role whose fields have the kinds behaviour demands. Fields it does
// not know are not judged. The error is a *FieldError.
func Validate(m Message) error { return nil }

// Normalize turns input from outside into a message: it refuses bytes that are
// not UTF-8 (*UTF8Error), removes insignificant white space, validates, and
// stamps now (Unix ms) when there is no timestamp.
func Normalize(raw []byte, now int64) (Message, error) { return Message(raw), nil }
