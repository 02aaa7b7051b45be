package store

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxSessionID is the longest session id, in bytes.
const MaxSessionID = 128

// InvalidID refuses a session id that is no safe file name.
type InvalidID struct {
	ID     string
	Reason string
}

func (e *InvalidID) Error() string { return fmt.Sprintf("session id %q %s", e.ID, e.Reason) }

// CheckID reports as *InvalidID what keeps an id from being a file name that is
// safe everywhere: letters, digits, dot, underscore and hyphen, 1 to
// MaxSessionID of them, the first no dot or hyphen, no two dots together, and
// no name that some systems keep for devices.
func CheckID(id string) error {
	reason := ""
	switch {
	case id == "":
		reason = "is empty"
	case len(id) > MaxSessionID:
		reason = fmt.Sprintf("has %d bytes, more than %d", len(id), MaxSessionID)
	case id[0] == '.' || id[0] == '-':
		reason = fmt.Sprintf("starts with %q", id[0])
	case strings.Contains(id, ".."):
		reason = `holds ".."`
	case isDeviceName(id):
		reason = "is the name of a device"
	default:
		if i := strings.IndexFunc(id, func(r rune) bool { return !isIDChar(r) }); i >= 0 {
			_, n := utf8.DecodeRuneInString(id[i:])
			reason = fmt.Sprintf("holds %q", id[i:i+n])
		}
	}
	if reason == "" {
		return nil
	}
	return &InvalidID{ID: id, Reason: reason}
}

func isIDChar(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}

// isDeviceName reports names that a repository on Windows could not hold.
func isDeviceName(id string) bool {
	stem, _, _ := strings.Cut(strings.ToUpper(id), ".")
	switch stem {
	case "CON", "PRN", "AUX", "NUL":
		return true
	}
	return len(stem) == 4 && (strings.HasPrefix(stem, "COM") || strings.HasPrefix(stem, "LPT")) && stem[3] >= '1' && stem[3] <= '9'
}
