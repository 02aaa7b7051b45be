package store

import (
	"errors"
	"fmt"
)

// ErrClosed is returned by every read and commit after Close (spec §1.5).
var ErrClosed = errors.New("session is closed")

// ErrNotFound is returned when no session, entry, lane or value matches.
var ErrNotFound = errors.New("not found")

// ErrExists is returned when a session id is already taken.
var ErrExists = errors.New("session exists already")

// ErrOpen is returned by a second open of a session in this process (spec §2.8).
var ErrOpen = errors.New("session is already open in this process")

// InvalidWrite is a transaction that was refused before anything changed.
type InvalidWrite struct {
	Index int // of the offending write in the transaction
	Err   error
}

func (e *InvalidWrite) Error() string { return fmt.Sprintf("write %d: %v", e.Index, e.Err) }

// Unwrap returns the reason.
func (e *InvalidWrite) Unwrap() error { return e.Err }

// StructuralMember refuses an entry whose payload has a member with the name of a
// structural field.
type StructuralMember struct{ Name string }

func (e *StructuralMember) Error() string {
	return fmt.Sprintf("payload member %q has the name of a structural field", e.Name)
}

// TooLarge is a payload above MaxPayload.
type TooLarge struct{ Size int64 }

func (e *TooLarge) Error() string {
	return fmt.Sprintf("payload of %d bytes is larger than %d", e.Size, int64(MaxPayload))
}

// Corrupt is a store that cannot be trusted. Line counts from 1 and is 0 where
// lines mean nothing; Offset is in bytes, -1 when unknown.
type Corrupt struct {
	Path   string
	Line   int64
	Offset int64
	// Entry is the id of an entry that is missing, "" for damage of another kind.
	Entry string
	Msg   string
}

// MissingEntry is the damage of a session in which what by names refers to an
// entry that is not there.
func MissingEntry(id, by string) *Corrupt {
	return &Corrupt{Offset: -1, Entry: id, Msg: fmt.Sprintf("entry %s is missing; %s refers to it", id, by)}
}

func (e *Corrupt) Error() string {
	switch {
	case e.Path == "":
		return e.Msg
	case e.Line > 0:
		return fmt.Sprintf("%s: line %d (byte %d): %s", e.Path, e.Line, e.Offset, e.Msg)
	case e.Offset >= 0:
		return fmt.Sprintf("%s: byte %d: %s", e.Path, e.Offset, e.Msg)
	}
	return fmt.Sprintf("%s: %s", e.Path, e.Msg)
}

// NewerVersion is a store written by a newer binary (spec §7.3).
type NewerVersion struct {
	Path      string
	Found     int64
	Supported int64
}

func (e *NewerVersion) Error() string {
	return fmt.Sprintf("%s: storage version %d is newer than %d, the newest this drover reads", e.Path, e.Found, e.Supported)
}

// OlderVersion is a store of an older storage version that nobody here can migrate
// (spec §7.3).
type OlderVersion struct {
	Path      string
	Found     int64
	Supported int64
}

func (e *OlderVersion) Error() string {
	return fmt.Sprintf("%s: storage version %d has to be migrated to %d", e.Path, e.Found, e.Supported)
}

// Legacy is a coding-agent file that would have to be converted to be written
// (D58).
type Legacy struct{ Path string }

func (e *Legacy) Error() string {
	return fmt.Sprintf("%s: a legacy session is read-only", e.Path)
}

// Held is a session that another process owns (spec §1.7, D22, D23).
type Held struct {
	Path  string
	Lease Lease
}

func (e *Held) Error() string {
	return fmt.Sprintf("%s: owned by pid %d on %s", e.Path, e.Lease.PID, e.Lease.Host)
}

// Ambiguous is a session argument that several sessions match, the one changed last
// first.
type Ambiguous struct {
	Arg        string
	Candidates []Ref
}

func (e *Ambiguous) Error() string {
	return fmt.Sprintf("%q matches %d sessions", e.Arg, len(e.Candidates))
}

// Fault is a commit that failed after it was admitted, or a panic: memory and disk
// may differ, so the session accepts nothing more (spec §4.8).
type Fault struct {
	Doing string // what failed, when it was no commit
	Err   error
}

func (e *Fault) Error() string {
	if panicked, ok := errors.AsType[*Panicked](e.Err); ok {
		return panicked.Error()
	}
	if e.Doing == "" {
		return "commit: " + e.Err.Error()
	}
	return e.Doing + ": " + e.Err.Error()
}

// Unwrap returns the cause; an *os.PathError or a syscall error makes it exit 6.
func (e *Fault) Unwrap() error { return e.Err }

// Lost is an owner that found its session file deleted, replaced or taken over
// (D12, D19).
type Lost struct {
	Path   string
	Reason string // "deleted", "replaced", "fenced"
}

func (e *Lost) Error() string { return fmt.Sprintf("%s: %s under its owner", e.Path, e.Reason) }

// BadValue is a stored value that does not have the shape its address promises.
type BadValue struct {
	Address Address
	Err     error
}

func (e *BadValue) Error() string { return fmt.Sprintf("decode %s: %v", e.Address, e.Err) }

// Unwrap returns the decoding error.
func (e *BadValue) Unwrap() error { return e.Err }
