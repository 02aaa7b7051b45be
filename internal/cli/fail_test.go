package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model/scripted"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/v3import"
)

// Every error that can leave a command has its code and tag, however deeply it
// is wrapped, and no failure exits with 0.
func TestExplain(t *testing.T) {
	unknown := &effect.UnknownModel{Ref: message.ModelRef{Provider: "x", ModelID: "y"}}
	cases := []struct {
		name string
		err  error
		code exitCode
		tag  string
	}{
		{"usage", usagef("x"), exitUsage, "usage"},
		{"configuration", configf("x"), exitUsage, "config"},
		{"a configuration that is not there", unreadable("open", &fs.PathError{Op: "open", Path: "p", Err: syscall.ENOENT}), exitUsage, "config"},
		{"a configuration that may not be read", unreadable("open", &fs.PathError{Op: "open", Path: "p", Err: syscall.EACCES}), exitIO, "io"},
		{"unsupported", unsupportedf("x"), exitRefused, "unsupported"},
		{"broken script", &scripted.ScriptError{Path: "f", Line: 1, Column: 2}, exitUsage, "config"},
		{"lane busy", &engine.LaneBusy{Lane: "main"}, exitRefused, "lane_busy"},
		{"lane busy in the store", &store.LaneBusy{Lane: "main"}, exitRefused, "lane_busy"},
		{"mismatch", &engine.OperationMismatch{Lane: "main"}, exitRefused, "operation_mismatch"},
		{"missing identities", &engine.MissingIdentities{Missing: op.Missing{Model: "x/y"}, Err: unknown}, exitRefused, "missing_identities"},
		{"invalid message", &engine.InvalidMessage{Reason: "x"}, exitRefused, "invalid_message"},
		{"nothing to resume", &engine.NothingToResume{Lane: "main"}, exitRefused, "nothing_to_resume"},
		{"lane not found", &engine.LaneNotFound{Lane: "x"}, exitNotFound, "lane_not_found"},
		{"unknown lane", &store.UnknownLane{Lane: "x"}, exitNotFound, "lane_not_found"},
		{"unknown entry", &store.UnknownTarget{ID: "x"}, exitNotFound, "entry_not_found"},
		{"bad id", &store.InvalidID{ID: "../x"}, exitUsage, "usage"},
		{"bad lane", &store.InvalidLane{Lane: ""}, exitUsage, "usage"},
		{"too large", &store.TooLarge{Size: 1 << 30}, exitRefused, "invalid_message"},
		{"held", &store.Held{Path: "p"}, exitLocked, "lease_held"},
		{"open here", store.ErrOpen, exitLocked, "lease_held"},
		{"ambiguous", &store.Ambiguous{Arg: "a"}, exitNotFound, "ambiguous_session"},
		{"not found", store.ErrNotFound, exitNotFound, "session_not_found"},
		{"exists", store.ErrExists, exitRefused, "session_exists"},
		{"corrupt", &store.Corrupt{Path: "p", Line: 3}, exitCorrupt, "corrupt"},
		{"a missing entry", store.MissingEntry("a", "entry b"), exitCorrupt, "corrupt"},
		{"bad value", &store.BadValue{Err: errors.New("x")}, exitCorrupt, "corrupt"},
		{"newer", &store.NewerVersion{Path: "p"}, exitVersion, "newer_version"},
		{"legacy", &store.Legacy{Path: "p"}, exitVersion, "legacy"},
		{"lost", &store.Fault{Err: &store.Lost{Path: "p", Reason: "deleted"}}, exitIO, "io"},
		{"disk full in a commit", &store.Fault{Err: &fs.PathError{Op: "write", Path: "p", Err: syscall.ENOSPC}}, exitIO, "io"},
		{"permission", &os.PathError{Op: "open", Path: "p", Err: syscall.EACCES}, exitIO, "io"},
		{"errno", syscall.EIO, exitIO, "io"},
		{"fault of our own", &store.Fault{Err: errors.New("impossible")}, exitInternal, "fault"},
		{"a panic", &store.Fault{Err: &store.Panicked{Value: syscall.EIO}}, exitInternal, "fault"},
		{"defect", &engine.Defect{Lane: "main", Err: errors.New("x")}, exitInternal, "fault"},
		{"anything else", errors.New("x"), exitInternal, "fault"},
		{"import: damage", &v3import.Failure{Code: v3import.CodeCorrupt}, exitCorrupt, "corrupt"},
		{"import: newer", &v3import.Failure{Code: v3import.CodeNewer}, exitVersion, "newer_version"},
		{"import: warned", &v3import.Failure{Code: v3import.CodeStrict}, exitRefused, "strict"},
		{"import: exists", &v3import.Failure{Code: v3import.CodeExists}, exitRefused, "session_exists"},
		{"import: absent", &v3import.Failure{Code: v3import.CodeMissing}, exitNotFound, "not_found"},
		{"import: held", &v3import.Failure{Code: v3import.CodeHeld}, exitLocked, "lease_held"},
		{"import: i/o", &v3import.Failure{Code: v3import.CodeIO}, exitIO, "io"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, err := range []error{c.err, fmt.Errorf("open session x: %w", c.err)} {
				f := explain(err)
				if f.code != c.code || f.tag != c.tag {
					t.Errorf("%v is %d %s, want %d %s", err, f.code, f.tag, c.code, c.tag)
				}
				if f.code == exitOK || f.message == "" && c.err.Error() != "" {
					t.Errorf("%v has code %d and message %q", err, f.code, f.message)
				}
			}
		})
	}
	if explain(nil) != nil {
		t.Error("no error is a failure")
	}
}

// A signal explains only errors that say that work was cut short.
func TestBySignal(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(&interrupted{syscall.SIGTERM})
	for err, want := range map[error]exitCode{
		context.Canceled:                            exitTerm,
		fmt.Errorf("x: %w", store.ErrClosed):        exitTerm,
		context.Cause(ctx):                          exitTerm,
		&store.Corrupt{Path: "p"}:                   exitCorrupt,
		usagef("x"):                                 exitUsage,
		&failure{code: exitFailed, tag: "failed"}:   exitFailed,
		&failure{code: exitLater, tag: "yielded"}:   exitLater,
		fmt.Errorf("write: %w", error(os.ErrExist)): exitInternal,
	} {
		if got := explain(bySignal(ctx, err)).code; got != want {
			t.Errorf("%v exits with %d, want %d", err, got, want)
		}
	}
	if bySignal(ctx, nil) != nil {
		t.Error("a command that had ended well is undone by a signal")
	}
	if err := bySignal(context.Background(), context.Canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("without a signal: %v", err)
	}
}

func TestOutcomeCodes(t *testing.T) {
	at := int64(1000)
	settled := func(kind op.Outcome) engine.DriveOutcome {
		return engine.DriveOutcome{Kind: engine.Settled, OperationID: "o", Outcome: &engine.Outcome{Operation: op.KindRun, Kind: kind, Error: &op.Error{Message: "why"}}}
	}
	cases := []struct {
		name string
		d    engine.DriveOutcome
		code exitCode
		tag  string
	}{
		{"completed", settled(op.Completed), exitOK, ""},
		{"failed", settled(op.Failed), exitFailed, "failed"},
		{"aborted", settled(op.Aborted), exitAborted, "aborted"},
		{"declined", settled(op.Declined), exitAborted, "declined"},
		{"retry", engine.DriveOutcome{Kind: engine.Waiting, Reason: engine.WaitRetry, NotBefore: &at}, exitLater, "waiting"},
		{"missing", engine.DriveOutcome{Kind: engine.Waiting, Reason: engine.WaitMissing, Missing: &op.Missing{Tools: []string{"t"}}}, exitLater, "waiting"},
		{"yielded", engine.DriveOutcome{Kind: engine.Yielded}, exitLater, "yielded"},
	}
	for _, c := range cases {
		err := outcomeFailure(pursuit{session: "s", lane: "main", at: "s"}, c.d)
		if c.code == exitOK {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if f := explain(err); f.code != c.code || f.tag != c.tag || f.message == "" {
			t.Errorf("%s: %d %s %q, want %d %s", c.name, f.code, f.tag, f.message, c.code, c.tag)
		}
	}
}

func TestItemsFailure(t *testing.T) {
	damage, busy := &store.Corrupt{Path: "p"}, &engine.LaneBusy{}
	cases := []struct {
		name string
		errs []error
		code exitCode
		tag  string
	}{
		{"none", nil, exitOK, ""},
		{"all well", []error{nil, nil}, exitOK, ""},
		{"one item, its own failure", []error{busy}, exitRefused, "lane_busy"},
		{"all alike", []error{damage, damage}, exitCorrupt, "corrupt"},
		{"some", []error{damage, nil}, exitPartial, "partial"},
		{"all, each in its way", []error{damage, busy}, exitPartial, "partial"},
	}
	for _, c := range cases {
		err := itemsFailure("things", c.errs)
		if c.code == exitOK {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if f := explain(err); f.code != c.code || f.tag != c.tag {
			t.Errorf("%s: %d %s, want %d %s", c.name, f.code, f.tag, c.code, c.tag)
		}
	}
}

// What waits has not failed, and does not share its code with what has.
func TestSweptCode(t *testing.T) {
	for _, c := range []struct {
		name  string
		codes []exitCode
		want  exitCode
	}{
		{"nothing", nil, exitOK},
		{"all completed", []exitCode{exitOK, exitOK}, exitOK},
		{"all wait", []exitCode{exitLater, exitLater}, exitLater},
		{"some completed, some wait", []exitCode{exitOK, exitLater, exitOK}, exitLater},
		{"all failed alike", []exitCode{exitFailed, exitFailed}, exitFailed},
		{"all failed, each in its way", []exitCode{exitFailed, exitAborted}, exitPartial},
		{"a failure beside one that completed", []exitCode{exitOK, exitFailed}, exitPartial},
		{"a failure beside a wait", []exitCode{exitLater, exitFailed}, exitPartial},
		{"some of each", []exitCode{exitOK, exitLater, exitFailed}, exitPartial},
	} {
		if got := sweptCode(c.codes); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// The error line of the formats for scripts is one line of JSON, whatever the
// message holds.
func TestFailureLine(t *testing.T) {
	var stderr strings.Builder
	p := &printer{streams: &streams{err: &stderr}, format: formatJSON}
	f := usagef("two\nlines \x1b[31m and half a pair \xed\xa0\xbd")
	f.details = func(o *object) { o.str("k", "v") }
	p.failure(f.withHint("h"))
	want := `{"type":"error","code":"usage","message":"two\nlines \u001b[31m and half a pair \ud83d","exit":2,"hint":"h","details":{"k":"v"}}` + "\n"
	if diff := cmp.Diff(want, stderr.String()); diff != "" {
		t.Error(diff)
	}
	stderr.Reset()
	p.format = formatText
	p.failure(f)
	want = "drover: two\nlines \\x1b[31m and half a pair \\xed\\xa0\\xbd\nhint: h\n"
	if diff := cmp.Diff(want, stderr.String()); diff != "" {
		t.Error(diff)
	}
}

// A panic is our defect, not a usage error, and never exit 0.
func TestPanic(t *testing.T) {
	err := guarded(func() error { panic("boom") })
	if f := explain(err); f.code != exitInternal || f.tag != "fault" || !strings.Contains(f.message, "boom") {
		t.Errorf("%d %s %q", f.code, f.tag, f.message)
	}
}
