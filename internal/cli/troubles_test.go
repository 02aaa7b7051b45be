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
