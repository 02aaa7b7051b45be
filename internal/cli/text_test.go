package cli

import (
	"bufio"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-run/drover/internal/visible"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

func TestEscape(t *testing.T) {
	cases := []struct{ in, line, text string }{
		{"plain é 会話 🙂", "plain é 会話 🙂", "plain é 会話 🙂"},
		{"a\nb\tc", `a\nb\tc`, "a\nb\tc"},
		{"a\r\nb\rc", `a\r\nb\rc`, "a\nb\\rc"},
		{"\x1b[31m\x07\x00", `\x1b[31m\x07\x00`, `\x1b[31m\x07\x00`},
		{"\x7f\u0085\u009b", `\x7f\x85\x9b`, `\x7f\x85\x9b`},
		{"\u2028\u2029\u202e\u2066\ufeff", `\u2028\u2029\u202e\u2066\ufeff`, `\u2028\u2029\u202e\u2066\ufeff`},
		{"half \xed\xa0\xbd, bad \xff", `half \xed\xa0\xbd, bad \xff`, `half \xed\xa0\xbd, bad \xff`},
		{"\ufffd", "\ufffd", "\ufffd"},
	}
	for _, c := range cases {
		if got := escapeLine(c.in); got != c.line {
			t.Errorf("escapeLine(%q) = %q, want %q", c.in, got, c.line)
		}
		if got := escapeText(c.in); got != c.text {
			t.Errorf("escapeText(%q) = %q, want %q", c.in, got, c.text)
		}
	}
}

// Whatever a line holds, a terminal has nothing to act on.
func TestEscapeIsSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		for _, r := range escapeLine(s) {
			if visible.Unsafe(r) {
				t.Fatalf("%q leaves %U", s, r)
			}
		}
		if again := escapeLine(escapeLine(s)); again != escapeLine(s) {
			t.Fatalf("%q is not stable", s)
		}
	})
}

func TestWhen(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC).UnixMilli()
	for d, want := range map[time.Duration]string{
		0: "just now", 40 * time.Second: "40s ago", 3 * time.Minute: "3m ago", 5 * time.Hour: "5h ago",
		50 * time.Hour: "2d ago", 31 * 24 * time.Hour: "2025-12-31", -time.Hour: "2026-01-31T13:00:00Z",
	} {
		if got := ago(now-d.Milliseconds(), now); got != want {
			t.Errorf("%s before now is %q, want %q", d, got, want)
		}
	}
	for s, want := range map[string]int64{"90s": now + 90_000, "2026-01-31T12:00:01Z": now + 1000, "0": now} {
		if got, err := parseWhen("--t", s, now, 1); err != nil || got != want {
			t.Errorf("%s is %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "-5s", "tomorrow", "90"} {
		if got, err := parseWhen("--t", s, now, 1); err == nil {
			t.Errorf("%q is %d", s, got)
		}
	}
}

// A table never passes the terminal's width, and keeps every row on its line.
func TestTable(t *testing.T) {
	tab := table{
		header: []string{"id", "name", "cwd"},
		rows: [][]string{
			{"abcdefgh", strings.Repeat("会話", 30), "/short"},
			{"12345678", "n", "/" + strings.Repeat("x", 100)},
		},
	}
	var out strings.Builder
	if err := tab.render(&out, 40); err != nil {
		t.Fatal(err)
	}
	want := "" +
		"ID        NAME           CWD\n" +
		"abcdefgh  会話会話会話…  /short\n" +
		"12345678  n              /xxxxxxxxxxxx…\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	out.Reset()
	if err := tab.render(&out, 0); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), strings.Repeat("x", 100)) {
		t.Error("a table for a pipe is cut")
	}
}

// Figures are never cut, whatever the terminal has room for.
func TestTableWhole(t *testing.T) {
	tab := table{
		header: []string{"model", "cost"},
		rows:   [][]string{{"provider/of-a-long-name", "19.965123456789"}},
		whole:  []string{"cost"},
	}
	var out strings.Builder
	if err := tab.render(&out, 20); err != nil {
		t.Fatal(err)
	}
	if want := "MODEL     COST\nprovide…  19.965123456789\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestShortIDs(t *testing.T) {
	ids := []string{"0193-aaaa-11111111", "0194-bbbb-11111111", "0195-cccc-22222222"}
	p := &printer{streams: &streams{}}
	if got := p.shortIDs(ids)(ids[0]); got != ids[0] {
		t.Errorf("in a pipe an id is cut to %q", got)
	}
	p.outTTY = true
	if got := p.shortIDs(ids)(ids[0]); got != "a-11111111" {
		t.Errorf("an ambiguous ending is shown as %q", got)
	}
	if got := p.shortIDs(ids[1:])(ids[2]); got != "22222222" {
		t.Errorf("a clear ending is shown as %q", got)
	}
}

// An answer reaches stdout as it arrives and ends with a newline; a character
// that was streamed in two halves comes out whole.
func TestFollower(t *testing.T) {
	update := func(kind message.EventType, delta string) engine.Event {
		return engine.Event{Type: op.EventMessageUpdate, Lane: "main", Stream: &message.StreamEvent{Type: kind, Delta: delta}}
	}
	answer := engine.Event{Type: op.EventMessageEnd, Lane: "main", Message: message.Message(`{"role":"assistant","content":[{"type":"text","text":"whole"}]}`)}
	cases := []struct {
		name   string
		tty    bool
		events []engine.Event
		want   string
	}{
		{"deltas", false, []engine.Event{update(message.EventTextDelta, "a"), update(message.EventTextDelta, "b\n"), answer}, "ab\n"},
		{"a newline of its own", false, []engine.Event{update(message.EventTextDelta, "a"), answer}, "a\n"},
		{"two blocks", false, []engine.Event{update(message.EventTextDelta, "a"), update(message.EventTextStart, ""), update(message.EventTextDelta, "b"), answer}, "a\nb\n"},
		{"halves", false, []engine.Event{update(message.EventTextDelta, "x\xed\xa0\xbd"), update(message.EventTextDelta, "\xed\xb9\x82y"), answer}, "x🙂y\n"},
		{"a half that stays alone", false, []engine.Event{update(message.EventTextDelta, "x\xed\xa0\xbd"), answer}, "x\ufffd\n"},
		{"no deltas at all", false, []engine.Event{{Type: op.EventMessageStart, Lane: "main"}, answer}, "whole\n"},
		{"what recovery saved", false, []engine.Event{{Type: op.EventMessageEnd, Lane: "main", Recovery: true, Message: answer.Message}}, ""},
		{"another lane", false, []engine.Event{{Type: op.EventMessageEnd, Lane: "side", Message: answer.Message}}, ""},
		{"a pipe gets bytes", false, []engine.Event{update(message.EventTextDelta, "\x1b[1m"), answer}, "\x1b[1m\n"},
		{"a terminal gets escapes", true, []engine.Event{update(message.EventTextDelta, "\x1b[1m"), answer}, "\\x1b[1m\n"},
		{"the user's words are not repeated", false, []engine.Event{{Type: op.EventMessageEnd, Lane: "main", Message: message.Message(`{"role":"user","content":"q"}`)}}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var out, errs strings.Builder
			p := &printer{streams: &streams{out: &sink{w: bufio.NewWriter(&out)}, err: &errs, outTTY: c.tty}, format: formatText}
			f := newFollower(p, "main")
			for _, e := range c.events {
				f.take(e)
			}
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Long arrays leave in pieces, and read as one document.
func TestObjectDrains(t *testing.T) {
	var out strings.Builder
	o := newObject()
	o.w = &out
	o.str("before", "x")
	big := message.Message(`"` + strings.Repeat("y", 100<<10) + `"`)
	o.values("all", 9, func(int) store.Appender { return big })
	o.array("objects", 9, func(i int, o *object) { o.raw("m", big) })
	o.null("after")
	b, err := o.bytes()
	if err != nil {
		t.Fatal(err)
	}
	if out.Len() < 1<<20 {
		t.Errorf("only %d bytes left early", out.Len())
	}
	document := out.String() + string(b)
	for path, want := range map[string]string{"before": "x", "all.8": string(big[1 : len(big)-1]), "objects.0.m": string(big[1 : len(big)-1]), "after": "null"} {
		assertField(t, document, path, want)
	}
}

func TestGuessFormat(t *testing.T) {
	for args, want := range map[string]format{
		"":                       formatText,
		"list --json":            formatJSON,
		"list -o ndjson":         formatNDJSON,
		"list -ojson":            formatJSON,
		"list --output=json":     formatJSON,
		"list --output json x":   formatJSON,
		"prompt s -- --json":     formatText,
		"list --output yaml":     formatText,
		"list --json --output x": formatJSON,
	} {
		if got := guessFormat(strings.Fields(args), ""); got != want {
			t.Errorf("%q is %s, want %s", args, got, want)
		}
	}
	if got := guessFormat(nil, "ndjson"); got != formatNDJSON {
		t.Errorf("the environment says ndjson, got %s", got)
	}
}

func TestNearest(t *testing.T) {
	names := []string{"retry.max_retries", "retry.base_delay", "repo", "output"}
	for word, want := range map[string]string{"retry.max_retires": "retry.max_retries", "rep": "repo", "ouptut": "output", "": "repo"} {
		if got := nearest(word, names); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}
