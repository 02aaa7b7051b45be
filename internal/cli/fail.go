package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/drover-run/drover/pkg/model/scripted"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/v3import"
)

// failure is an error as the outside sees it: the exit code, the tag that
// scripts match on, a sentence, and details as a JSON object.
type failure struct {
	code    exitCode
	tag     string
	message string
	hint    string
	details func(*object)
	cause   error
	// place is the session and lane that it is about, where no argument named them.
	place string
	// stuck is set of a wait that does not end before a person does something.
	stuck bool
}

func (f *failure) Error() string { return f.message }

// Unwrap returns the error that the failure explains.
func (f *failure) Unwrap() error { return f.cause }

func usagef(format string, args ...any) *failure {
	return &failure{code: exitUsage, tag: "usage", message: fmt.Sprintf(format, args...)}
}

func configf(format string, args ...any) *failure {
	return &failure{code: exitUsage, tag: "config", message: fmt.Sprintf(format, args...)}
}

func unsupportedf(format string, args ...any) *failure {
	return &failure{code: exitRefused, tag: "unsupported", message: fmt.Sprintf(format, args...)}
}

func notFoundf(tag, format string, args ...any) *failure {
	return &failure{code: exitNotFound, tag: tag, message: fmt.Sprintf(format, args...)}
}

// placed is the message behind the place that it is about.
func (f *failure) placed() string {
	if f.place == "" {
		return f.message
	}
	return f.place + ": " + f.message
}

// withHint returns the failure with a line that says what to do about it.
func (f *failure) withHint(format string, args ...any) *failure {
	f.hint = fmt.Sprintf(format, args...)
	return f
}

// explain turns any error into the one form that is printed and exited with.
// Nothing else maps errors to exit codes.
func explain(err error) *failure {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	f := explainPanic(err)
	if f == nil {
		f = explainStore(err)
	}
	if f == nil {
		f = explainSystem(err)
	}
	if f == nil {
		f = &failure{code: exitInternal, tag: "fault"}
	}
	f.cause = err
	if f.message == "" {
		f.message = err.Error()
	}
	return f
}

// codeOf is what a process exits with that ends with err.
func codeOf(err error) exitCode {
	if f := explain(err); f != nil {
		return f.code
	}
	return exitOK
}

// explainPanic knows a defect that the engine caught; nil for any other error. The
// stack is for whoever mends it, and stands where scripts find it.
func explainPanic(err error) *failure {
	e, ok := errors.AsType[*store.Panicked](err)
	if !ok {
		return nil
	}
	return &failure{
		code: exitInternal, tag: "fault", message: e.Error() + "; the session was closed as it stood",
		details: func(o *object) { o.str("stack", string(e.Stack)) },
	}
}

// explainStore knows the refusals of store and engine; nil for any other error.
func explainStore(err error) *failure {
	if f := explainDeletion(err); f != nil {
		return f
	}
	if f := explainRefusal(err); f != nil {
		return f
	}
	if f := explainOwner(err); f != nil {
		return f
	}
	if f := explainExport(err); f != nil {
		return f
	}
	if e, ok := errors.AsType[*v3import.Failure](err); ok {
		return explainImport(e)
	}
	if e, ok := errors.AsType[*scripted.ScriptError](err); ok {
		return configf("%v", e)
	}
	if e, ok := errors.AsType[*store.Held](err); ok {
		return explainHeld(e)
	}
	if e, ok := errors.AsType[*store.Ambiguous](err); ok {
		return explainAmbiguous(e)
	}
	if e, ok := errors.AsType[*store.Corrupt](err); ok {
		return &failure{code: exitCorrupt, tag: "corrupt", details: corruptDetails(e)}
	}
	if e, ok := errors.AsType[*store.BadValue](err); ok {
		return &failure{code: exitCorrupt, tag: "corrupt", details: func(o *object) { o.str("address", e.Address.String()) }}
	}
	if e, ok := errors.AsType[*store.NewerVersion](err); ok {
		return &failure{code: exitVersion, tag: "newer_version", details: func(o *object) {
			o.str("path", e.Path)
			o.int("found", e.Found)
			o.int("supported", e.Supported)
		}}
	}
	if e, ok := errors.AsType[*store.SeveralFiles](err); ok {
		f := &failure{code: exitRefused, tag: "session_exists", message: e.Error(), details: func(o *object) { o.strs("paths", e.Paths) }}
		return f.withHint("keep one: remove the other, or move it out of the repository; of an interrupted `drover migrate`, the same command does that")
	}
	if e, ok := errors.AsType[*store.BackupTaken](err); ok {
		f := &failure{code: exitRefused, tag: "backup_exists", details: func(o *object) { o.str("path", e.Path) }}
		return f.withHint("move it away, or give --no-backup to keep no further one")
	}
	if e, ok := errors.AsType[*store.OlderVersion](err); ok {
		return &failure{code: exitVersion, tag: "older_version", details: func(o *object) {
			o.str("path", e.Path)
			o.int("found", e.Found)
			o.int("supported", e.Supported)
		}}
	}
	if e, ok := errors.AsType[*store.Legacy](err); ok {
		f := &failure{code: exitVersion, tag: "legacy", details: func(o *object) { o.str("path", e.Path) }}
		return f.withHint("import it with `drover import-v3 %s`, or convert the file itself with --in-place", e.Path)
	}
	if e, ok := errors.AsType[*store.Moved](err); ok {
		f := &failure{code: exitIO, tag: "io", details: func(o *object) { o.str("path", e.To.Path) }}
		return f.withHint("give the command again")
	}
	if _, ok := errors.AsType[*store.Lost](err); ok {
		return &failure{code: exitIO, tag: "io"}
	}
	switch {
	case errors.Is(err, store.ErrExists):
		return &failure{code: exitRefused, tag: "session_exists"}
	case errors.Is(err, store.ErrOpen):
		return &failure{code: exitLocked, tag: "lease_held"}
	case errors.Is(err, store.ErrNotFound):
		return (&failure{code: exitNotFound, tag: "session_not_found"}).withHint("`drover list` shows the sessions")
	}
	return nil
}

// explainSystem knows what the operating system reports; nil for any other
// error.
func explainSystem(err error) *failure {
	_, isErrno := errors.AsType[syscall.Errno](err)
	_, isPath := errors.AsType[*fs.PathError](err)
	switch {
	case isErrno, isPath, errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist),
		errors.Is(err, os.ErrClosed), errors.Is(err, os.ErrDeadlineExceeded):
		return &failure{code: exitIO, tag: "io"}
	case errors.Is(err, store.ErrClosed), errors.Is(err, context.Canceled):
		return &failure{code: exitInternal, tag: "closed"}
	}
	return nil
}

func explainHeld(e *store.Held) *failure {
	f := &failure{code: exitLocked, tag: "lease_held", details: func(o *object) { o.lease(&e.Lease) }}
	f.message = fmt.Sprintf("%s is owned by pid %d on %s", e.Path, e.Lease.PID, e.Lease.Host)
	if e.Lease.Since > 0 {
		f.message += " since " + instant(e.Lease.Since)
	}
	return f.withHint("wait for it with --lease-wait 30s")
}

func explainAmbiguous(e *store.Ambiguous) *failure {
	f := &failure{code: exitNotFound, tag: "ambiguous_session", details: func(o *object) {
		o.array("candidates", len(e.Candidates), func(i int, o *object) {
			o.str("id", e.Candidates[i].ID)
			o.str("path", e.Candidates[i].Path)
		})
	}}
	f.message = fmt.Sprintf("%q matches %d sessions", escapeLine(e.Arg), len(e.Candidates))
	for _, c := range e.Candidates {
		f.message += "\n  " + escapeLine(c.ID) + "  " + escapeLine(c.Path)
	}
	return f.withHint("%s", ambiguousHint(e))
}

// ambiguousHint says how to name one of several sessions. Those of one id are files in
// two encodings, or copies.
func ambiguousHint(e *store.Ambiguous) string {
	ids := map[string]bool{}
	for _, c := range e.Candidates {
		ids[c.ID] = true
	}
	switch {
	case len(ids) == 1:
		return "name one by its path"
	case strings.HasPrefix(e.Arg, store.NamePrefix):
		return "name one by its id; the one that changed last comes first"
	}
	return "give more of the id"
}

func corruptDetails(e *store.Corrupt) func(*object) {
	return func(o *object) {
		o.optStr("path", e.Path)
		o.optStr("entryId", e.Entry)
		if e.Line > 0 {
			o.int("line", e.Line)
		}
		if e.Offset >= 0 {
			o.int("offset", e.Offset)
		}
	}
}
