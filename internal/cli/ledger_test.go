package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

func TestGroupBy(t *testing.T) {
	const monday, tuesday = "0198c0a0-0000-7000-8000-000000000001", "0198c6d0-0000-7000-8000-000000000002"
	attributed := func(kind, model, outcome string, attempt string) []byte {
		return []byte(`{"attribution":{"operationId":"o","lane":"main","kind":"` + kind + `","provider":"p","modelId":"` + model +
			`","attempt":` + attempt + `,"outcome":"` + outcome + `"}}`)
	}
	rows := []store.UsageRow{
		{ID: monday, Usage: []byte(`{"input":1}`), Details: attributed("assistant", "m", "error", "1")},
		{ID: monday, Usage: []byte(`{"input":2}`), Details: attributed("assistant", "m", "stop", "2")},
		{ID: tuesday, Usage: []byte(`{"input":4}`), Details: attributed("compaction", "n/x", "stop", "1")},
		{ID: tuesday, Usage: []byte(`{"input":8}`), Details: attributed("deferred", "m", "stop", "3")},
		{ID: "import-1", Usage: []byte(`{"input":16}`), Details: []byte(`{"attribution":7}`)},
	}
	var all []spent
	for _, row := range rows {
		s, err := newSpent("session", row)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	used := func(n int64) usageSum { return usageSum{u: message.Usage{Input: n}} }
	cases := map[string][]*group{
		"session":  {{"session", used(31), 5, 1, 1, 1}},
		"lane":     {{"main", used(15), 4, 1, 1, 1}, {"unknown", used(16), 1, 0, 0, 0}},
		"provider": {{"p", used(15), 4, 1, 1, 1}, {"unknown", used(16), 1, 0, 0, 0}},
		"model":    {{"p/m", used(11), 3, 1, 1, 0}, {"p/n/x", used(4), 1, 0, 0, 1}, {"unknown", used(16), 1, 0, 0, 0}},
		"day":      {{"2025-08-19", used(3), 2, 1, 1, 0}, {"2025-08-20", used(12), 2, 0, 0, 1}, {"unknown", used(16), 1, 0, 0, 0}},
	}
	for by, want := range cases {
		found := groups{}
		found.add(by, all)
		if diff := cmp.Diff(want, found.sorted(), cmp.AllowUnexported(group{}, usageSum{})); diff != "" {
			t.Errorf("by %s:\n%s", by, diff)
		}
	}
}

func TestParseStopPoint(t *testing.T) {
	cases := []struct {
		text string
		want stopPoint
		ok   bool
	}{
		{"assistant.request", stopPoint{"assistant.request", 1}, true},
		{"tool.execute#12", stopPoint{"tool.execute", 12}, true},
		{"hook.before_tool", stopPoint{"hook.before_tool", 1}, true},
		{"", stopPoint{}, false},
		{"assistant", stopPoint{}, false},
		{"tool.execute#", stopPoint{}, false},
		{"tool.execute#0", stopPoint{}, false},
		{"tool.execute#-1", stopPoint{}, false},
		{"tool.execute#1#2", stopPoint{}, false},
	}
	for _, c := range cases {
		got, err := parseStopPoint(c.text)
		if (err == nil) != c.ok || c.ok && got != c.want {
			t.Errorf("parse %q: %+v, %v", c.text, got, err)
		}
	}
}

// On a terminal the ledger has the ids that the tool takes and figures to the last
// digit; as CSV it has everything.
func TestLedgerOnTerminal(t *testing.T) {
	w := killWorld{repo: t.TempDir()}
	const a, b = "01a22be0-0000-7000-8000-0000aaaaaaaa", "01a22be0-0000-7000-8000-0000bbbbbbbb"
	for _, args := range [][]string{
		{"create", "--id", a},
		{"create", "--id", b},
		{"usage", "record", a, `{"input":1234567,"output":7654321,"totalTokens":8888888,"cost":{"total":19.965123456789}}`},
	} {
		if code, out := w.here(args...); code != exitOK {
			t.Fatal(code, out)
		}
	}
	shown := func(args ...string) string {
		var stdout, stderr strings.Builder
		f := newFactory([]string{"HOME=/", "DROVER_REPO=" + w.repo}, newStreams(strings.NewReader(""), &stdout, &stderr))
		f.io.outTTY, f.io.width = true, 60
		if code := run(f, args); code != exitOK {
			t.Fatal(code, stderr.String())
		}
		return stdout.String()
	}
	for _, args := range [][]string{{"usage", a, "--rows"}, {"usage", "--all", "--by", "session"}, {"usage", "--all"}} {
		out := shown(args...)
		if !strings.Contains(out, "aaaaaaaa ") || strings.Contains(out, "01a22be0") || !strings.Contains(out, "19.965123456789") || !strings.Contains(out, "8888888") {
			t.Errorf("%v:\n%s", args, out)
		}
		if csv := shown(append(args, "--csv")...); !strings.Contains(csv, a+",") {
			t.Errorf("%v as CSV:\n%s", args, csv)
		}
	}
}
