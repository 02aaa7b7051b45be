package export_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/drover-run/drover/internal/redact"
	"github.com/drover-run/drover/pkg/export"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
)

func rulesOf(t *testing.T, file string) *redact.Rules {
	t.Helper()
	r, err := redact.Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// marked has a marker in every place where content can live.
func marked() *session {
	m := func(n int) string { return fmt.Sprintf("MARK-%02d", n) }
	s := (&session{}).
		user("1", "", m(1)).
		message("2", "1", `{"role":"assistant","content":[{"type":"text","text":"\u004d\u0041RK-02"},{"type":"thinking","thinking":"`+m(3)+`"},`+
			`{"type":"toolCall","id":"c","name":"t","arguments":{"`+m(4)+`":"`+m(5)+`"}}],"stopReason":"error","errorMessage":"`+m(6)+`","diagnostics":[{"x":"`+m(7)+`"}],"unknown":"`+m(8)+`"}`).
		message("3", "2", `{"role":"toolResult","toolCallId":"c","toolName":"t","content":[{"type":"text","text":"`+m(9)+`"}],"details":{"a":["`+m(10)+`"]},"isError":false}`).
		message("4", "3", `{"role":"bashExecution","command":"`+m(11)+`","output":"`+m(12)+`"}`).
		message("5", "4", `{"role":"custom","customType":"n","content":"`+m(13)+`","display":true,"details":"`+m(14)+`"}`).
		entry("6", "5", store.TypeCustom, "app", `{"data":{"`+m(15)+`":["`+m(16)+`"]},"more":"`+m(17)+`"}`).
		compactionOf("7", "6", m(18), user(m(19)), `,"details":{"files":["`+m(20)+`"]}`).
		entry("8", "7", store.TypeBranchSummary, "", `{"fromId":"1","summary":"`+m(21)+`","details":"`+m(22)+`"}`).
		user("9", "1", m(23)). // beside the path
		set(store.EntryLabel("1").Set(m(24))).
		set(store.SessionName().Set(m(25))).
		set(store.NewValue[string]("app", "k").Set(m(26))).
		set(store.NewList[string]("app", "l").Append(m(27))).
		set(store.Pending("q1").Set(store.PendingEntry{Type: store.TypeMessage, Payload: []byte(user(m(28)))})).
		set(store.Pending("q2").Set(store.PendingEntry{Type: store.TypeCustom, CustomType: "app", Payload: []byte(`{"role":"` + m(29) + `"}`)})).
		set(store.NewValue[map[string]string]("pi.lane.lastResult", "main").Set(map[string]string{"error": m(30)})).
		lane("main", "8")
	return s.record(store.Record{Kind: store.KindUsage, Usage: &store.UsageRow{
		ID: "u1", Seq: int64(len(s.records)) + 1, Usage: []byte(`{"input":1}`), Details: []byte(`{"note":"` + m(31) + `"}`),
	}})
}

func (s *session) compactionOf(id, parent, summary, tail, rest string) *session {
	return s.entry(id, parent, store.TypeCompaction, "", `{"summary":"`+summary+`","retainedTail":[`+tail+`],"tokensBefore":9`+rest+`}`)
}

// forms write a source in every way there is.
func forms(t *testing.T) map[string]func(*export.Source, *bytes.Buffer) error {
	return map[string]func(*export.Source, *bytes.Buffer) error{
		"pi-v3":    func(s *export.Source, w *bytes.Buffer) error { _, err := s.PiV3(t.Context(), w); return err },
		"html":     func(s *export.Source, w *bytes.Buffer) error { return s.Document(t.Context(), export.HTML(w)) },
		"markdown": func(s *export.Source, w *bytes.Buffer) error { return s.Document(t.Context(), export.Markdown(w)) },
		"json": func(s *export.Source, w *bytes.Buffer) error {
			return s.Each(t.Context(), func(e store.Entry) bool {
				raw, _ := e.AppendJSON(nil)
				w.Write(raw)
				return true
			})
		},
		"v4-jsonl": func(s *export.Source, w *bytes.Buffer) error {
			snap, err := s.Snapshot()
			if err != nil {
				return err
			}
			return jsonl.Driver{}.Write(t.Context(), w, snap)
		},
	}
}

// B46: what is redacted leaves in no form, from no place and in no spelling; and
// without rules it is there.
func TestRedactionReachesEverything(t *testing.T) {
	for name, write := range forms(t) {
		var with, without bytes.Buffer
		r := marked().reader(t)
		if err := write(open(t, r, export.Options{AllBranches: true}), &without); err != nil {
			t.Fatal(err)
		}
		if err := write(open(t, r, export.Options{AllBranches: true, Redact: rulesOf(t, "regex:MARK-[0-9]+ ==> gone")}), &with); err != nil {
			t.Fatal(err)
		}
		if i := strings.Index(with.String(), "RK-"); i >= 0 {
			t.Errorf("%s: left in %q", name, with.String()[max(0, i-40):min(i+20, with.Len())])
		}
		if !strings.Contains(without.String(), "MARK-23") || !strings.Contains(with.String(), "gone") {
			t.Errorf("%s: the marker is not there without rules, or nothing in its place with them", name)
		}
	}
}

// What a redacted copy needs to be a session stays.
func TestRedactedStorageKeepsStructure(t *testing.T) {
	r := marked().reader(t)
	var out bytes.Buffer
	if err := forms(t)["v4-jsonl"](open(t, r, export.Options{Redact: rulesOf(t, "regex:MARK-[0-9]+ ==> gone")}), &out); err != nil {
		t.Fatal(err)
	}
	for _, kept := range []string{`"id":"u1"`, `"namespace":"pi.pending.entry","key":"q1"`, `"role":"gone"`, `"role":"user"`} {
		if !strings.Contains(out.String(), kept) {
			t.Errorf("%s is missing", kept)
		}
	}
	if strings.Contains(out.String(), "pi.lane.lastResult") {
		t.Error("the outcome of the last operation went along")
	}
}

// What is structure refuses the export before anything is written.
func TestRedactionRefuses(t *testing.T) {
	for _, tt := range []struct{ name, rules, want string }{
		{"a tool's name", "tool-x ==> y", "name of entry 2"},
		{"an entry's id", "2 ==> y", "id of entry 2"},
		{"the session's id", "regex:^session-1$ ==> y", "id of the session"},
		{"a lane", "main ==> y", "name of lane main"},
		{"the model", "m-7 ==> y", "model of lane main"},
		{"a custom type", "note.t ==> y", "customType of entry 3"},
		{"an address", "app-key ==> y", "app/app-key"},
	} {
		s := (&session{}).user("1", "", "a").
			message("2", "1", `{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"tool-x","arguments":{}}]}`).
			entry("3", "2", store.TypeCustom, "note.t", `{}`).
			set(store.NewValue[string]("app", "app-key").Set("v")).
			set(store.LaneConfig("main").Set(store.LaneConfiguration{Model: message.ModelRef{Provider: "p", ModelID: "m-7"}})).
			lane("main", "3")
		src, err := export.Open(t.Context(), s.reader(t), export.Options{Redact: rulesOf(t, tt.rules)})
		if err == nil {
			_, err = src.Snapshot()
		}
		var refused *export.StructuralMatch
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "the first is "+tt.want) {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
}
