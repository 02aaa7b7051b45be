package export_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/export"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// answer is an assistant message that ended in some way.
func answer(text string, stop message.StopReason) string {
	return `{"role":"assistant","content":[{"type":"text","text":"` + text + `"}],"provider":"p","model":"m","stopReason":"` + string(stop) + `","timestamp":2}`
}

// names replaces the ids of a legacy file by letters, in order of appearance.
func names(out []byte) string {
	text := string(out)
	next := 'A'
	for line := range strings.Lines(text) {
		if id, ok := rawjson.GetString([]byte(line), "id"); ok && len(id) == 8 {
			text = strings.ReplaceAll(text, `"`+id+`"`, `"`+string(next)+`"`)
			next++
		}
	}
	return text
}

func equal(t *testing.T, got, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(got)); diff != "" {
		t.Error(diff)
	}
}

// Every kind of entry has its record; bytes of payloads stay.
func TestPiV3Records(t *testing.T) {
	s := (&session{}).
		message("e1", "", `{"role":"user","content":"caf\u00e9","n":1.0,"timestamp":1}`).
		message("e2", "e1", answer("hi", "stop")).
		message("e3", "e2", `{"role":"custom","customType":"note","content":"c","display":true,"details":{"a":1},"timestamp":1700000003000}`).
		message("e4", "e3", `{"role":"custom","customType":"note","content":"c","extra":1,"timestamp":3}`).
		entry("e5", "e4", store.TypeCustom, "app", `{"data":[1.50],"more":2}`).
		entry("e6", "e5", store.TypeCustom, "empty", `{}`).
		entry("e7", "e6", store.TypeBranchSummary, "", `{"fromId":"e1","summary":"s","fromHook":false}`).
		entry("e8", "e7", store.TypeBranchSummary, "", `{"fromId":null,"summary":"s","fromHook":false}`).
		entry("e9", "e8", store.TypeCustom, "pi.context_edit", `{"data":{"targetId":"e1","replacement":null}}`).
		entry("e10", "e9", store.TypeCustom, "pi.v3.plan", `{"data":{"type":"plan","id":"x","parentId":null,"timestamp":"2020","steps":[1]}}`).
		entry("e11", "e10", store.TypeCustom, "pi.v3.message", `{"data":{"type":"message","id":"x"}}`).
		entry("e12", "e11", store.TypeMessage, "", `{"message":`+user("last")+`,"terminate":true}`).
		set(store.EntryLabel("e2").Set("good")).
		set(store.EntryLabel("gone").Set("nowhere")).
		set(store.SessionName().Set("a \"name\"")).
		set(store.LaneConfig("main").Set(store.LaneConfiguration{Model: message.ModelRef{Provider: "p", ModelID: "m/1"}, ThinkingLevel: "low"})).
		lane("main", "e12")
	out, report := piV3(t, s.reader(t), export.Options{})
	if report.Entries != 12 || report.Tails != nil {
		t.Errorf("report: %+v", report)
	}
	equal(t, names(out), `
{"type":"session","version":3,"id":"session-1","timestamp":"2023-11-14T22:13:20.000Z","cwd":"/work"}
{"type":"message","id":"A","parentId":null,"timestamp":"2023-11-14T22:13:21.000Z","message":{"role":"user","content":"caf\u00e9","n":1.0,"timestamp":1}}
{"type":"message","id":"B","parentId":"A","timestamp":"2023-11-14T22:13:22.000Z","message":{"role":"assistant","content":[{"type":"text","text":"hi"}],"provider":"p","model":"m","stopReason":"stop","timestamp":2}}
{"type":"custom_message","id":"C","parentId":"B","timestamp":"2023-11-14T22:13:23.000Z","customType":"note","content":"c","display":true,"details":{"a":1}}
{"type":"message","id":"D","parentId":"C","timestamp":"2023-11-14T22:13:24.000Z","message":{"role":"custom","customType":"note","content":"c","extra":1,"timestamp":3}}
{"type":"custom","id":"E","parentId":"D","timestamp":"2023-11-14T22:13:25.000Z","customType":"app","data":[1.50],"more":2}
{"type":"custom","id":"F","parentId":"E","timestamp":"2023-11-14T22:13:26.000Z","customType":"empty"}
{"type":"branch_summary","id":"G","parentId":"F","timestamp":"2023-11-14T22:13:27.000Z","fromId":"A","summary":"s","fromHook":false}
{"type":"branch_summary","id":"H","parentId":"G","timestamp":"2023-11-14T22:13:28.000Z","fromId":"root","summary":"s","fromHook":false}
{"type":"context_edit","id":"I","parentId":"H","timestamp":"2023-11-14T22:13:29.000Z","targetId":"A","replacement":null}
{"type":"plan","id":"J","parentId":"I","timestamp":"2023-11-14T22:13:30.000Z","steps":[1]}
{"type":"custom","id":"K","parentId":"J","timestamp":"2023-11-14T22:13:31.000Z","customType":"pi.v3.message","data":{"type":"message","id":"x"}}
{"type":"message","id":"L","parentId":"K","timestamp":"2023-11-14T22:13:32.000Z","message":{"role":"user","content":"last","timestamp":1},"terminate":true}
{"type":"model_change","id":"M","parentId":"L","timestamp":"2023-11-14T22:13:32.000Z","provider":"p","modelId":"m/1"}
{"type":"thinking_level_change","id":"N","parentId":"M","timestamp":"2023-11-14T22:13:32.000Z","thinkingLevel":"low"}
{"type":"label","id":"O","parentId":"N","timestamp":"2023-11-14T22:13:32.000Z","targetId":"B","label":"good"}
{"type":"session_info","id":"P","parentId":"O","timestamp":"2023-11-14T22:13:32.000Z","name":"a \"name\""}
`)
	again := imported(t, out)
	sameTree(t, s.reader(t), again)
	labels, err := store.Scan(t.Context(), again, store.EntryLabels())
	if err != nil || len(labels) != 1 || labels[0].Value != "good" {
		t.Errorf("labels: %v, %v", labels, err)
	}
}

func TestPiV3Empty(t *testing.T) {
	out, _ := piV3(t, (&session{}).lane("main", "").reader(t), export.Options{})
	equal(t, string(out), `{"type":"session","version":3,"id":"session-1","timestamp":"2023-11-14T22:13:20.000Z","cwd":"/work"}`)
	_, err := export.Open(t.Context(), (&session{}).lane("main", "").reader(t), export.Options{Lane: "side"})
	var unknown *store.UnknownLane
	if !errors.As(err, &unknown) || unknown.Lane != "side" {
		t.Errorf("got %v", err)
	}
}

// The kept range of a compaction is found on its branch, or written again.
func TestPiV3Tails(t *testing.T) {
	a, b, c := user("a"), answer("b", "stop"), user("c")
	for _, tt := range []struct {
		name  string
		from  *session
		leaf  string
		kept  string // text of the first kept message; "" for nothing
		fresh int
	}{
		{"nothing", (&session{}).user("1", "", "a").compaction("k", "1", ""), "k", "", 0},
		{"without a tail", (&session{}).user("1", "", "a").entry("k", "1", store.TypeCompaction, "", `{"summary":"s"}`), "k", "", 0},
		{"the end of the branch", (&session{}).user("1", "", "a").message("2", "1", b).user("3", "2", "c").compaction("k", "3", b+","+c), "k", "b", 0},
		{"all of it", (&session{}).user("1", "", "a").message("2", "1", b).compaction("k", "2", a+","+b), "k", "a", 0},
		{"an answer that failed in between", (&session{}).user("1", "", "a").message("2", "1", answer("x", "error")).user("3", "2", "c").compaction("k", "3", a+","+c), "k", "a", 0},
		{"an answer that failed, kept", (&session{}).user("1", "", "z").message("2", "1", answer("x", "error")).user("3", "2", "c").compaction("k", "3", answer("x", "error")+","+c), "k", "x", 0},
		{"entries without messages in between", (&session{}).user("1", "", "a").entry("2", "1", store.TypeCustom, "app", `{}`).user("3", "2", "c").compaction("k", "3", a+","+c), "k", "a", 0},
		{"more members around a message", (&session{}).entry("1", "", store.TypeMessage, "", `{"message":`+a+`,"x":1}`).user("3", "1", "c").compaction("k", "3", a+","+c), "k", "a", 0},
		{
			"a branch summary", (&session{}).user("1", "", "z").entry("2", "1", store.TypeBranchSummary, "", `{"fromId":"1","summary":"sum"}`).user("3", "2", "c").
				compaction("k", "3", `{"role":"branchSummary","summary":"sum","fromId":"1","timestamp":7},`+c), "k", "sum", 0,
		},
		{
			"across an older compaction", (&session{}).user("1", "", "a").message("2", "1", b).compaction("j", "2", b).user("3", "j", "c").compaction("k", "3", b+","+c),
			"k", "b", 0,
		},
		{
			"an edited message", (&session{}).user("1", "", "a").entry("2", "1", store.TypeCustom, "pi.context_edit", `{"data":{"targetId":"1","replacement":{"content":"new"}}}`).
				user("3", "2", "c").compaction("k", "3", strings.Replace(a, `"a"`, `"new"`, 1)+","+c), "k", "a", 0,
		},
		{
			"a removed message", (&session{}).user("1", "", "a").user("2", "1", "gone").entry("3", "2", store.TypeCustom, "pi.context_edit", `{"data":{"targetId":"2","replacement":null}}`).
				compaction("k", "3", a), "k", "a", 0,
		},
		{"a system message leads", (&session{}).user("1", "", "a").compaction("k", "1", `{"role":"system","content":"rules"},`+a), "k", "a", 0},
		{"a message left out", (&session{}).user("1", "", "a").message("2", "1", b).user("3", "2", "c").compaction("k", "3", a+","+c), "k", "a", 2},
		{"another order", (&session{}).user("1", "", "a").user("3", "1", "c").compaction("k", "3", c+","+a), "k", "c", 2},
		{"more than the branch has", (&session{}).user("3", "", "c").compaction("k", "3", a+","+c), "k", "a", 2},
		{"a compaction first of all", (&session{}).compaction("k", "", a), "k", "a", 1},
		{"a custom message from elsewhere", (&session{}).compaction("k", "", `{"role":"custom","customType":"n","content":"c","display":false,"timestamp":1}`), "k", "c", 1},
		{
			"a range that begins in a tail written again", (&session{}).user("1", "", "z").compaction("j", "1", a+","+b).user("3", "j", "c").compaction("k", "3", b+","+c),
			"k", "b", 2,
		},
		{
			"a range across a tail written again", (&session{}).user("0", "", "y").user("1", "0", "z").compaction("j", "1", a).user("3", "j", "c").compaction("k", "3", a+","+c).user("4", "k", "d"),
			"4", "a", 1,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := tt.from.lane("main", tt.leaf).reader(t)
			out, report := piV3(t, r, export.Options{})
			fresh := 0
			for _, tail := range report.Tails {
				fresh += tail.Messages
			}
			if fresh != tt.fresh {
				t.Errorf("%d messages written again, want %d", fresh, tt.fresh)
			}
			if got := firstKept(t, out); got != tt.kept {
				t.Errorf("the range begins with %q, want %q:\n%s", got, tt.kept, out)
			}
			if diff := cmp.Diff(conversation(t, r, "main"), conversation(t, imported(t, out), "main")); diff != "" {
				t.Errorf("%s\n%s", diff, out)
			}
		})
	}
}

// firstKept is the text of the record that the last compaction's range begins
// with.
func firstKept(t *testing.T, out []byte) string {
	t.Helper()
	lines := map[string][]byte{}
	var first, own string
	for line := range strings.Lines(string(out)) {
		raw := []byte(strings.TrimSpace(line))
		id, _ := rawjson.GetString(raw, "id")
		lines[id] = raw
		if typ, _ := rawjson.GetString(raw, "type"); typ == "compaction" {
			first, _ = rawjson.GetString(raw, "firstKeptEntryId")
			own = id
			if raw, ok := rawjson.Get(raw, "retainedTail"); ok {
				t.Errorf("a retained tail in the file: %s", raw)
			}
		}
	}
	line := lines[first]
	if first == own {
		return ""
	}
	if s, ok := rawjson.GetString(line, "summary"); ok {
		return s
	}
	if s, ok := rawjson.GetString(line, "content"); ok {
		return s
	}
	m, _ := rawjson.Get(line, "message")
	return message.Message(m).Text()
}

// The path of the lane comes last, whatever else goes out, and the file opens
// where the lane stands.
func TestPiV3Order(t *testing.T) {
	tree := func() *session {
		return (&session{}).
			user("1", "", "root").user("2", "1", "dead").user("3", "2", "dead end").
			user("4", "1", "live").user("5", "4", "side").user("6", "4", "later").user("7", "", "other root")
	}
	for _, tt := range []struct {
		name, leaf string
		all        bool
		texts      string
	}{
		{"the path", "6", false, "root live later"},
		{"another lane's path", "3", false, "root dead dead end"},
		{"nothing", "", false, ""},
		{"all branches", "6", true, "root dead dead end live side other root later"},
		{"all, the path's end is older", "3", true, "root live side later other root dead dead end"},
		{"all, the leaf has children", "4", true, "root dead dead end live side later other root"},
		{"all, before the first entry", "", true, "root dead dead end live side later other root"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := tree().lane("main", "1").lane("side", tt.leaf).reader(t)
			out, _ := piV3(t, r, export.Options{Lane: "side", AllBranches: tt.all})
			var texts []string
			for line := range strings.Lines(string(out)) {
				if m, ok := rawjson.Get([]byte(strings.TrimSpace(line)), "message"); ok {
					texts = append(texts, message.Message(m).Text())
				}
			}
			if got := strings.Join(texts, " "); got != tt.texts {
				t.Errorf("got %q, want %q", got, tt.texts)
			}
			again := imported(t, out)
			if diff := cmp.Diff(conversation(t, r, "side"), conversation(t, again, "main")); diff != "" {
				t.Error(diff)
			}
			if tt.all {
				sameTree(t, r, again)
			}
		})
	}
}

// A branch summary of what does not go out names what is nearest above it.
func TestPiV3SummaryOfADeadBranch(t *testing.T) {
	r := (&session{}).user("1", "", "a").user("2", "1", "dead").
		entry("3", "1", store.TypeBranchSummary, "", `{"fromId":"2","summary":"s"}`).lane("main", "3").reader(t)
	out, _ := piV3(t, r, export.Options{})
	if !strings.Contains(names(out), `"fromId":"A"`) || strings.Contains(string(out), "dead") {
		t.Errorf("got %s", names(out))
	}
}

// Any tree, with compactions that keep anything, comes back as the same
// conversation.
func TestPiV3AnySession(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := &session{}
		ids, above := []string{""}, map[string][]string{} // messages on the way to an entry
		texts := []string{}
		for i := range rapid.IntRange(1, 14).Draw(rt, "entries") {
			id := fmt.Sprintf("entry-%d", i)
			parent := rapid.SampledFrom(ids[max(0, len(ids)-3):]).Draw(rt, "parent")
			above[id] = above[parent]
			switch kind := rapid.IntRange(0, 5).Draw(rt, "kind"); {
			case kind == 0 && len(texts) > 0:
				from := rapid.IntRange(0, len(texts)-1).Draw(rt, "tail")
				s.compaction(id, parent, strings.Join(texts[from:], ","))
			case kind == 1:
				s.message(id, parent, answer(id, "error"))
			case kind == 2 && len(above[parent]) > 0:
				target := rapid.SampledFrom(above[parent]).Draw(rt, "target")
				s.entry(id, parent, store.TypeCustom, "pi.context_edit", `{"data":{"targetId":"`+target+`","replacement":{"content":"edit `+id+`"}}}`)
			case kind == 3:
				s.entry(id, parent, store.TypeBranchSummary, "", `{"fromId":null,"summary":"sum `+id+`"}`)
			default:
				m := user(id)
				s.message(id, parent, m)
				texts = append(texts, m)
				above[id] = append(slices.Clip(above[parent]), id)
			}
			ids = append(ids, id)
		}
		leaf := rapid.SampledFrom(ids).Draw(rt, "leaf")
		r := s.lane("main", leaf).reader(t)
		for _, all := range []bool{false, true} {
			out, _ := piV3(t, r, export.Options{AllBranches: all})
			if diff := cmp.Diff(conversation(t, r, "main"), conversation(t, imported(t, out), "main")); diff != "" {
				rt.Fatalf("all branches %t: %s\n%s", all, diff, out)
			}
		}
	})
}
