package export_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/export"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// pending is an answer that leaves a job pending.
func pending(job, content, note string) string {
	return `{"role":"assistant","content":[` + content + `],"provider":"acme","model":"one","stopReason":"deferred","deferred":{"id":"` + job + `"}` + note + `}`
}

const refusedNote = `,"diagnostics":[{"type":"provider_error","status":401,"message":"acme/one answered 401: <no>"}]`

// The polls of one job are one line, whatever stands between its jobs breaks it, and
// an answer that says something is a turn.
func TestDocumentDeferrals(t *testing.T) {
	said := `{"type":"text","text":"wait"}`
	for _, tt := range []struct {
		name    string
		session *session
		want    string
	}{
		{"a request", (&session{}).user("1", "", "go").message("2", "1", pending("a", "", "")), "User; deferred"},
		{"one poll", (&session{}).message("1", "", pending("a", "", "")).message("2", "1", pending("a", "", "")),
			"deferred (1 poll, at 2023-11-14T22:13:22Z)"},
		{"three polls and the answer", (&session{}).message("1", "", pending("a", "", "")).message("2", "1", pending("a", "", "")).
			message("3", "2", pending("a", "", "")).message("4", "3", pending("a", "", refusedNote)).
			message("5", "4", `{"role":"assistant","content":[`+said+`],"stopReason":"stop"}`),
			"deferred (3 polls, last at 2023-11-14T22:13:24Z), last poll: acme/one answered 401: <no>; Assistant wait"},
		{"a reason that is past", (&session{}).message("1", "", pending("a", "", "")).message("2", "1", pending("a", "", refusedNote)).
			message("3", "2", pending("a", "", "")), "deferred (2 polls, last at 2023-11-14T22:13:23Z)"},
		{"two jobs", (&session{}).message("1", "", pending("a", "", "")).message("2", "1", pending("b", "", "")), "deferred; deferred"},
		{"an entry between polls", (&session{}).message("1", "", pending("a", "", "")).entry("2", "1", store.TypeCustom, "x", `{}`).
			message("3", "2", pending("a", "", "")), "deferred; Custom; deferred (1 poll, at 2023-11-14T22:13:23Z)"},
		{"a label between polls", (&session{}).message("1", "", pending("a", "", "")).message("2", "1", pending("a", "", "")).
			set(store.EntryLabel("2").Set("here")), "deferred; here; deferred (1 poll, at 2023-11-14T22:13:22Z)"},
		{"an answer that says something", (&session{}).message("1", "", pending("a", said, "")).message("2", "1", pending("a", "", "")),
			"Assistant wait; deferred (1 poll, at 2023-11-14T22:13:22Z)"},
	} {
		last := map[bool]string{true: "2", false: "1"}[len(tt.session.records) > 1]
		for _, r := range tt.session.records {
			if r.Entry != nil {
				last = r.Entry.ID
			}
		}
		r := tt.session.lane("main", last).reader(t)
		page := document(t, r, export.Options{}, asHTML)
		_, page, _ = strings.Cut(page, "</header>")
		if diff := cmp.Diff(tt.want, digest(strings.ReplaceAll(strings.ReplaceAll(page, "&lt;", "<"), "&gt;", ">"))); diff != "" {
			t.Errorf("%s, HTML:\n%s", tt.name, diff)
		}
		_, text, _ := strings.Cut(document(t, r, export.Options{}, asMarkdown), "\n")
		if diff := cmp.Diff(tt.want, digest(text)); diff != "" {
			t.Errorf("%s, Markdown:\n%s", tt.name, diff)
		}
	}
}

// digest is what a document says of who spoke, and of what is to come.
func digest(text string) string {
	var all []string
	for _, m := range regexp.MustCompile(`(User|Custom|here|deferred[^<*\n]*(<no>)?|Assistant)( \(acme/one\))?( · 2023\S+Z| <time>\S+</time>)?(</h2>\s*<div class="text" dir="auto">|\n\n)?(wait)?`).FindAllStringSubmatch(text, -1) {
		switch {
		case m[1] == "Assistant" && m[6] == "": // of a line that is no turn
		case m[6] != "":
			all = append(all, m[1]+" "+m[6])
		default:
			all = append(all, m[1])
		}
	}
	return strings.Join(all, "; ")
}

// What a provider said becomes no markup.
func TestDeferralHostile(t *testing.T) {
	for _, text := range hostile {
		m := message.Message(`{"role":"assistant","content":[],"provider":"p","model":"m","stopReason":"deferred","deferred":{"id":"a"}}`)
		var out bytes.Buffer
		d := export.HTML(&out)
		d.Message(m, 0)
		d.Message(withNote(m, text), 1)
		if err := d.End(); err != nil {
			t.Fatal(err)
		}
		_, page, _ := strings.Cut(out.String(), `<p class="mark">`)
		line, _, _ := strings.Cut(page, "</p>\n")
		if strings.ContainsAny(line, "<>\"'\x00\x1b\u202e\u2066\u2028") {
			t.Errorf("%q: %q", text, line)
		}
	}
}

func withNote(m message.Message, text string) message.Message {
	note := message.AppendProviderError(nil, message.ErrorInfo{Class: message.ClassAuth, Text: text})
	return message.Message(strings.TrimSuffix(string(m), "}") + `,"diagnostics":` + string(note) + "}")
}
