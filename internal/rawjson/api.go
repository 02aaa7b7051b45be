package rawjson

// Kind classifies a JSON value by its first byte.
type Kind byte

// The kinds of JSON value; Invalid is anything that cannot start one.
const (
	Invalid Kind = 0
	Null    Kind = 'n'
	Bool    Kind = 't'
	Number  Kind = '0'
	String  Kind = '"'
	Array   Kind = '['
	Object  Kind = '{'
)

// SyntaxError reports text that is not the JSON it was taken for.
type SyntaxError struct {
	Offset int    // byte offset of the first offending byte in the scanned text
	Msg    string // what was expected or found, lower case
}

func (e *SyntaxError) Error() string { return e.Msg }

// Member is one member of an object, in place: Key is the raw key with its
// quotes, Value the raw value without surrounding white space. Both alias the
// scanned text.
type Member struct {
	Key, Value []byte
	// Start and End delimit the member in the scanned text, key to value.
	Start, End int
}
