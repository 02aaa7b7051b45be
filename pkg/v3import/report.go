package v3import

import (
	"fmt"
	"slices"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// NewestVersion is the newest legacy version this package reads.
const NewestVersion = 3

// Options govern the reading of one file.
type Options struct {
	// Strict refuses a file on its first warning.
	Strict bool
	// Salvage reads on past damage that would refuse the file, with a warning.
	Salvage bool
	// NewID gives the session a new id even where the header's could be kept.
	NewID bool
	// IDs mints entry ids; nil derives them from the session and the place in
	// the file, so that reading a file again gives the same ids.
	IDs store.IDSource
	// Now is the clock, Unix ms, for files without any usable time; nil means
	// the system's.
	Now func() int64
	// Path is the name shown in messages and kept in the header's source; ""
	// means the path that was read.
	Path string

	passing bool // the file goes away again: its path is not kept

	id   string      // what a batch calls the session, "" for its own choice
	why  string      // why a batch did not keep the header's id
	tick func(int64) // told of bytes read; each byte is read twice
}

// Warning is one thing that was repaired, changed or left out. Line counts from
// 1, Offset is in bytes from the start of the file.
type Warning struct {
	Line    int64  `json:"line"`
	Offset  int64  `json:"offset"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// The codes of a Failure, as commands report them.
const (
	CodeCorrupt = "corrupt"        // damage, or no session file at all
	CodeNewer   = "newer_version"  // a version above NewestVersion
	CodeStrict  = "strict"         // a warning under Options.Strict
	CodeExists  = "session_exists" // the session is in the repository already
	CodeMissing = "not_found"      // there is no such file
	CodeHeld    = "lease_held"     // the session to be replaced is open somewhere
	CodeIO      = "io"             // the file or the repository could not be used
)

// Failure is why a file was refused. Line counts from 1 and is 1 for an empty
// file; Offset is in bytes.
type Failure struct {
	Path    string
	Code    string
	Message string
	Line    int64
	Offset  int64
	// Salvageable tells that Options.Salvage reads on past it.
	Salvageable bool
	// Warnings are those collected before the file was refused.
	Warnings []Warning
	// Err is the cause, where it came from outside this package.
	Err error
}

func (f *Failure) Error() string {
	if !f.Placed() {
		return f.Path + ": " + f.Message
	}
	return fmt.Sprintf("%s: line %d (byte %d): %s", f.Path, f.Line, f.Offset, f.Message)
}

// Placed tells whether it is what stands at Line and Offset that is refused: of a file
// that is not there, or that the system or another process keeps from being used,
// no line is to blame.
func (f *Failure) Placed() bool {
	return f.Code != CodeMissing && f.Code != CodeIO && f.Code != CodeHeld
}

// Unwrap gives damage and newer versions as the store's own errors.
func (f *Failure) Unwrap() error {
	switch {
	case f.Err != nil:
		return f.Err
	case f.Code == CodeCorrupt:
		return &store.Corrupt{Path: f.Path, Line: f.Line, Offset: f.Offset, Msg: f.Message}
	case f.Code == CodeExists:
		return store.ErrExists
	case f.Code == CodeMissing:
		return store.ErrNotFound
	}
	return nil
}

// KindCount is how often one record type occurs in a file.
type KindCount struct {
	Type  string
	Count int64
}

// Report counts what a file held. Entries and Discarded together are all its
// records beside the header, and the sum over Kinds.
type Report struct {
	Entries   int64 // tree entries after conversion
	Discarded int64 // records that left the tree
	Messages  int64 // entries that are messages
	Kinds     []KindCount
	Usage     message.Usage
	Warnings  []Warning // in file order
}

// warningsPerCode is how many warnings of one code are listed one by one; the
// rest is one more that counts them.
const warningsPerCode = 100

// notes collects warnings.
type notes struct {
	list  []Warning
	codes map[string]*tally
}

type tally struct {
	seen  int64
	first Warning // of those not listed
}

func (n *notes) add(line, offset int64, code, format string, args ...any) {
	if n.codes == nil {
		n.codes = make(map[string]*tally)
	}
	t := n.codes[code]
	if t == nil {
		t = &tally{}
		n.codes[code] = t
	}
	t.seen++
	if t.seen <= warningsPerCode {
		n.list = append(n.list, Warning{line, offset, code, fmt.Sprintf(format, args...)})
	} else if t.seen == warningsPerCode+1 {
		t.first = Warning{Line: line, Offset: offset, Code: code}
	}
}

// sorted returns the warnings in file order.
func (n *notes) sorted() []Warning {
	out := slices.Clone(n.list)
	for _, t := range n.codes {
		if more := t.seen - warningsPerCode; more > 0 {
			t.first.Message = fmt.Sprintf("and %d more like this from here on", more)
			out = append(out, t.first)
		}
	}
	slices.SortStableFunc(out, func(a, b Warning) int {
		switch {
		case a.Offset != b.Offset:
			return int(max(-1, min(1, a.Offset-b.Offset)))
		case a.Code < b.Code:
			return -1
		case a.Code > b.Code:
			return 1
		}
		return 0
	})
	return out
}
