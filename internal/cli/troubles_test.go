package cli

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// A lane that failed is said to once on a terminal, where stdout lists it; a session
// that did not open stands nowhere else.
func TestTroublesOnTerminal(t *testing.T) {
	unopened := "b: it is broken\n"
	both := "a main: the run failed\n" + unopened
	for _, tt := range []struct {
		name     string
		out, err bool // are terminals
		quiet    bool
		format   format
		want     string
	}{
		{"both on a terminal", true, true, false, formatText, unopened},
		{"both, quiet", true, true, true, formatText, unopened},
		{"stdout elsewhere", false, true, false, formatText, both},
		{"stderr elsewhere", true, false, false, formatText, both},
		{"a timer's", false, false, true, formatText, both},
		{"a script's, whose error has them", false, false, false, formatJSON, ""},
	} {
		var said strings.Builder
		s := &sweep{lanes: []driven{
			{session: "a", lane: "main", err: &failure{code: exitFailed, tag: "failed", message: "the run failed"}},
			{session: "w", lane: "main", err: &failure{code: exitLater, tag: "waiting", message: "it waits"}},
			{session: "b", err: &store.Corrupt{Offset: -1, Msg: "it is broken"}},
		}}
		s.out = &printer{
			streams: &streams{out: &sink{w: bufio.NewWriter(io.Discard)}, err: &said, outTTY: tt.out, errTTY: tt.err},
			format:  tt.format, quiet: tt.quiet,
		}
		err := s.report(t.Context())
		if code := codeOf(err); code != exitPartial {
			t.Errorf("%s: exit %d", tt.name, code)
		}
		if diff := cmp.Diff(tt.want, said.String()); diff != "" {
			t.Errorf("%s:\n%s", tt.name, diff)
		}
	}
}

// Between two passes of one command only a poll that fails for a reason that stays
// breaks a silence that was asked for.
func TestTellWait(t *testing.T) {
	at := int64(1_700_000_000_000)
	later := "s side: the provider answers later, not before 2023-11-14T22:13:20Z; the last poll failed: "
	for _, tt := range []struct {
		name   string
		failed message.ErrorInfo
		quiet  bool
		want   string
	}{
		{"it will pass", message.ErrorInfo{Known: true, Status: 503, Class: message.ClassServer, Text: "busy"}, false, later + "busy\n"},
		{"it will pass, quiet", message.ErrorInfo{Known: true, Status: 503, Class: message.ClassServer, Text: "busy"}, true, ""},
		{"it stays, quiet", message.ErrorInfo{Known: true, Status: 401, Class: message.ClassAuth}, true, later + "the server answered 401\n"},
	} {
		var said strings.Builder
		o := &driveOptions{base: base{out: &printer{streams: &streams{err: &said}, format: formatText, quiet: tt.quiet}}}
		o.tellWait(pursuit{session: "s", lane: "side"}, engine.DriveOutcome{
			Kind: engine.Waiting, Reason: engine.WaitDeferred, NotBefore: &at, PollFailed: tt.failed,
		})
		if diff := cmp.Diff(tt.want, said.String()); diff != "" {
			t.Errorf("%s:\n%s", tt.name, diff)
		}
	}
}

// What a wait for a deferred answer asks a person to do, if anything.
func TestDeferredWaits(t *testing.T) {
	at := int64(1_700_000_000_000)
	const when = "not before 2023-11-14T22:13:20Z"
	failed := func(status int, class, text string) message.ErrorInfo {
		return message.ErrorInfo{Known: true, Status: status, Class: class, Text: text}
	}
	for _, tt := range []struct {
		name          string
		outcome       engine.DriveOutcome
		message, hint string
		stuck         bool
	}{
		{"nothing", engine.DriveOutcome{}, "the provider answers later, " + when, "ask for the answer with `drover drive s --poll-deferred`", false},
		{"its key", engine.DriveOutcome{PollFailed: failed(401, message.ClassAuth, "no")}, "the provider answers later, " + when + "; the last poll failed: no",
			keyHint + "; then ask again with `drover drive s --poll-deferred`", true},
		{"its address", engine.DriveOutcome{PollFailed: failed(404, message.ClassInvalidRequest, "nginx")}, "the provider answers later, " + when + "; the last poll failed: nginx",
			"is the base_url of its provider right? `drover help providers`; then ask again with `drover drive s --poll-deferred`", true},
		{"patience", engine.DriveOutcome{Unsure: true},
			"the provider may have the request already: that shows once the jobs that may be it have ended; they are looked at again, " + when,
			"go on with `drover drive s`; until then nothing is submitted again", false},
	} {
		tt.outcome.Kind, tt.outcome.Reason, tt.outcome.NotBefore = engine.Waiting, engine.WaitDeferred, &at
		f := explain(outcomeFailure(pursuit{session: "s", at: "s"}, tt.outcome))
		if f.code != exitLater || f.message != tt.message || f.hint != tt.hint || f.stuck != tt.stuck {
			t.Errorf("%s: %d %q, hint %q, stuck %v", tt.name, f.code, f.message, f.hint, f.stuck)
		}
	}
}
