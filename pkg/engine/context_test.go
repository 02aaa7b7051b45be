package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// branch is a path of entries, named by their ids, each under the one before.
type branch []store.NewEntry

func (b branch) add(e store.NewEntry) branch {
	if len(b) > 0 && e.ParentID == "" {
		e.ParentID = b[len(b)-1].ID
	}
	return append(b, e)
}

func (b branch) user(id, text string) branch {
	return b.add(store.MessageEntry(id, "", message.Message(`{"role":"user","content":"`+text+`","timestamp":1}`)))
}

func (b branch) answer(id, text string, stop message.StopReason) branch {
	return b.add(store.MessageEntry(id, "", message.Message(said(text, stop))))
}

func said(text string, stop message.StopReason) string {
	return `{"role":"assistant","content":[{"type":"text","text":"` + text + `"}],"stopReason":"` + string(stop) + `","timestamp":1}`
}

func (b branch) raw(id string, typ store.EntryType, payload string) branch {
	return b.add(store.NewEntry{ID: id, Type: typ, Payload: []byte(payload)})
}

func (b branch) custom(id, customType, data string) branch {
	return b.add(store.CustomEntry(id, "", customType, []byte(data)))
}

func (b branch) edit(id, target, replacement string) branch {
	return b.custom(id, "pi.context_edit", `{"targetId":"`+target+`","replacement":`+replacement+`}`)
}

// context is what a request from the branch's end would send.
func (b branch) context(t *testing.T, projectors map[string]engine.Projector) ([]message.Message, error) {
	t.Helper()
	w := enginetest.InMemory(t)
	w.Open()
	var writes []store.Write
	for _, e := range b {
		writes = append(writes, store.InsertEntry(e))
	}
	if len(b) == 0 {
		return engine.Context(t.Context(), w.Session, "", projectors)
	}
	commit(t, w, writes...)
	return engine.Context(t.Context(), w.Session, store.LeafID(b[len(b)-1].ID), projectors)
}

// short writes a context as one line: the first letter of each role and its text.
func short(messages []message.Message) string {
	var parts []string
	for _, m := range messages {
		parts = append(parts, string(m.Role()[0])+":"+m.Text())
	}
	return strings.Join(parts, " ")
}

// The projection of §2.5, rule by rule.
func TestContext(t *testing.T) {
	tail := func(messages ...string) string {
		return `{"summary":"sum","retainedTail":[` + strings.Join(messages, ",") + `],"tokensBefore":9,"fromHook":false}`
	}
	kept := `{"role":"user","content":"kept","timestamp":1}`
	projectors := map[string]engine.Projector{
		"app.note": func(e store.Entry) ([]message.Message, error) {
			return []message.Message{message.Message(`{"role":"user","content":"note of ` + e.ID + `"}`), message.Message(said("lost", message.StopError))}, nil
		},
		"app.none": func(store.Entry) ([]message.Message, error) { return nil, nil },
	}
	tests := []struct {
		name string
		from branch
		want string
	}{
		{"an empty session", nil, ""},
		{"oldest first", branch{}.user("1", "a").answer("2", "b", "stop").user("3", "c"), "u:a a:b u:c"},
		{"a genuine length stays", branch{}.user("1", "a").answer("2", "b", "length"), "u:a a:b"},
		{"calls stay", branch{}.user("1", "a").answer("2", "b", "toolUse"), "u:a a:b"},
		{"errors, aborts and deferred answers do not", branch{}.user("1", "a").answer("2", "b", "error").answer("3", "c", "aborted").answer("4", "d", "deferred").answer("5", "e", "stop"), "u:a a:e"},
		{"a compaction stands for what is before it", branch{}.user("1", "old").raw("2", store.TypeCompaction, tail(kept)).user("3", "new"), "c:sum u:kept u:new"},
		{"an empty tail", branch{}.user("1", "old").raw("2", store.TypeCompaction, tail()).user("3", "new"), "c:sum u:new"},
		{"a compaction without a tail", branch{}.user("1", "old").raw("2", store.TypeCompaction, `{"summary":"sum"}`).user("3", "new"), "c:sum u:new"},
		{"the newest compaction counts", branch{}.raw("1", store.TypeCompaction, tail(kept)).user("2", "mid").raw("3", store.TypeCompaction, `{"summary":"later","retainedTail":[]}`), "c:later"},
		{"the tail drops the same answers", branch{}.raw("1", store.TypeCompaction, tail(said("x", "error"), kept, said("y", "aborted"), said("z", "deferred"), said("w", "stop"))), "c:sum u:kept a:w"},
		{"a system message leads the tail", branch{}.raw("1", store.TypeCompaction, tail(`{"role":"system","content":"rules"}`, kept)), "c:sum s:rules u:kept"},
		{"a branch summary", branch{}.user("1", "a").raw("2", store.TypeBranchSummary, `{"fromId":"9","summary":"there","fromHook":false}`).user("3", "b"), "u:a b:there u:b"},
		{"an empty branch summary says nothing", branch{}.user("1", "a").raw("2", store.TypeBranchSummary, `{"fromId":"9","summary":""}`), "u:a"},
		{"a custom entry without a projector", branch{}.user("1", "a").custom("2", "app.other", `{"x":1}`), "u:a"},
		{"a custom entry with one", branch{}.user("1", "a").custom("2", "app.note", `{}`).custom("3", "app.none", `{}`), "u:a u:note of 2"},
		{"an edit replaces the content", branch{}.user("1", "a").user("2", "b").edit("3", "1", `{"content":"changed"}`), "u:changed u:b"},
		{"an edit to null removes", branch{}.user("1", "a").user("2", "b").edit("3", "1", `null`), "u:b"},
		{"the latest edit wins", branch{}.user("1", "a").edit("2", "1", `null`).edit("3", "1", `{"content":"back"}`).user("4", "b"), "u:back u:b"},
		{"the latest edit wins, removing", branch{}.user("1", "a").edit("2", "1", `{"content":"x"}`).edit("3", "1", `null`).user("4", "b"), "u:b"},
		{"an edited answer that failed stays out", branch{}.answer("1", "a", "error").edit("2", "1", `{"content":"x"}`), ""},
		{"an edit of nothing that is known", branch{}.user("1", "a").edit("2", "9", `null`), "u:a"},
		{"an edit without a target", branch{}.user("1", "a").custom("2", "pi.context_edit", `{"replacement":null}`), "u:a"},
		{"an edit from before the compaction", branch{}.user("1", "old").edit("2", "1", `null`).raw("3", store.TypeCompaction, tail(kept)), "c:sum u:kept"},
		{"an edit reaches into the retained tail", branch{}.user("1", "kept").raw("2", store.TypeCompaction, tail(kept)).edit("3", "1", `{"content":"changed"}`), "c:sum u:changed"},
		{
			"an edit reaches a copy that an earlier one had changed",
			branch{}.user("1", "kept").edit("2", "1", `{"content":"first"}`).raw("3", store.TypeCompaction, tail(strings.Replace(kept, "kept", "first", 1))).
				edit("4", "1", `{"content":"second"}`),
			"c:sum u:second",
		},
		{
			"an edit reaches a copy of a copy",
			branch{}.user("1", "kept").raw("2", store.TypeCompaction, tail(kept)).edit("3", "1", `{"content":"first"}`).
				raw("4", store.TypeCompaction, tail(strings.Replace(kept, "kept", "first", 1))).edit("5", "1", `null`).user("6", "b"),
			"c:sum u:b",
		},
		{
			"an edit after a removal finds no copy",
			branch{}.user("1", "kept").edit("2", "1", `null`).raw("3", store.TypeCompaction, tail()).edit("4", "1", `{"content":"back"}`).user("5", "b"),
			"c:sum u:b",
		},
		{"an edit removes from the retained tail", branch{}.user("1", "kept").raw("2", store.TypeCompaction, tail(kept)).edit("3", "1", `null`).user("4", "b"), "c:sum u:b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.from.context(t, projectors)
			if err != nil {
				t.Fatal(err)
			}
			enginetest.Equal(t, "context", short(got), tt.want)
		})
	}
}

// Payloads go through as they are, whatever is around them.
func TestContextKeepsBytes(t *testing.T) {
	odd := `{"role":"user","content":[{"type":"text","text":"caf\u00e9 \ud83d","x":1.0}],"n":[1e3],"n":2,"timestamp":7}`
	got, err := branch{}.
		raw("1", store.TypeCompaction, `{"summary":"s\u00fcm","retainedTail":[`+odd+`],"tokensBefore":1.0}`).
		raw("2", store.TypeBranchSummary, `{"fromId":"9","summary":"b\ud83d"}`).
		raw("3", store.TypeMessage, `{"message":`+odd+`}`).
		edit("4", "3", `{"content":"\ud83d"}`).
		context(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	enginetest.Equal(t, "context", got, []message.Message{
		[]byte(`{"role":"compactionSummary","summary":"s\u00fcm","tokensBefore":1.0,"timestamp":1700000000000}`),
		[]byte(odd),
		[]byte(`{"role":"branchSummary","summary":"b\ud83d","fromId":"9","timestamp":1700000000000}`),
		[]byte(`{"role":"user","content":"\ud83d","n":[1e3],"n":2,"timestamp":7}`),
	})
}

func TestContextErrors(t *testing.T) {
	no := errors.New("no")
	for name, tt := range map[string]struct {
		from branch
		want string
	}{
		"a compaction without a summary": {branch{}.raw("1", store.TypeCompaction, `{}`), "entry 1: compaction has no summary"},
		"a tail that is no list":         {branch{}.raw("1", store.TypeCompaction, `{"summary":"s","retainedTail":{}}`), "entry 1: retained tail: "},
		"a projector that fails":         {branch{}.custom("1", "app.bad", `{}`), "entry 1: projector of app.bad: no"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tt.from.context(t, map[string]engine.Projector{
				"app.bad": func(store.Entry) ([]message.Message, error) { return nil, no },
			})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	w := enginetest.InMemory(t)
	w.Open()
	var damage *store.Corrupt
	if _, err := engine.Context(t.Context(), w.Session, "nowhere", nil); !errors.As(err, &damage) || damage.Entry != "nowhere" {
		t.Errorf("a leaf that is not there: %v", err)
	}
}

// Only what lies after the newest compaction is read, however deep the branch.
func TestContextDeepBranch(t *testing.T) {
	const depth = 20_000
	b := branch{}
	for i := range depth {
		b = b.user(fmt.Sprintf("old%d", i), "old")
	}
	plain := b.user("leaf", "new")
	got, err := plain.context(t, nil)
	if err != nil || len(got) != depth+1 {
		t.Errorf("%d messages, %v", len(got), err)
	}
	got, err = b.raw("c", store.TypeCompaction, `{"summary":"sum","retainedTail":[]}`).user("leaf", "new").context(t, nil)
	if err != nil || short(got) != "c:sum u:new" {
		t.Errorf("got %s, %v", short(got), err)
	}
}

// What a request contains: projected, in provider roles, healed, with the limits
// and the level of its step (§2.5, D36).
func TestRequest(t *testing.T) {
	w := enginetest.InMemory(t)
	system := strings.Repeat("rule", 1_000)
	w.Options.SystemPrompt = func(engine.Prompting) string { return system }
	limit := int64(9_000)
	w.Options.StreamOptions = message.StreamOptions{MaxTokens: &limit}
	w.Model.ModelInfo.Thinking = []message.ThinkingLevel{message.ThinkingLow}
	w.Open()
	high := message.ThinkingHigh
	if err := w.Lane.Configure(t.Context(), engine.Configure{ThinkingLevel: &high}); err != nil {
		t.Fatal(err)
	}
	var writes []store.Write
	for _, e := range (branch{}).user("1", "old").
		raw("2", store.TypeCompaction, `{"summary":"sum","retainedTail":[{"role":"toolResult","toolCallId":"gone","toolName":"x","content":[],"isError":false}],"tokensBefore":9}`).
		raw("3", store.TypeMessage, `{"message":{"role":"bashExecution","command":"ls","output":"a","exitCode":0,"cancelled":false,"truncated":false,"timestamp":1}}`).
		raw("4", store.TypeMessage, `{"message":{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"read","arguments":{}}],"stopReason":"toolUse","timestamp":1}}`).
		raw("5", store.TypeMessage, `{"message":{"role":"custom","customType":"x","content":"note","display":true,"timestamp":1}}`) {
		writes = append(writes, store.InsertEntry(e))
	}
	commit(t, w, append(writes, store.LaneLeaf("main").Set("5"))...)
	w.Prompt("hi")
	req := w.Model.Requests()[0]
	var roles []string
	for _, m := range req.Messages {
		roles = append(roles, string(m.Role()))
	}
	enginetest.Equal(t, "roles", roles, []string{"user", "user", "assistant", "toolResult", "user", "user"})
	for i, part := range []string{"sum", "ls", "", "", "note", "hi"} {
		if !strings.Contains(req.Messages[i].Text(), part) {
			t.Errorf("message %d is %q, without %q", i, req.Messages[i].Text(), part)
		}
	}
	if req.Thinking != message.ThinkingLow || req.MaxOutput != 8_000 || req.SystemPrompt != system || req.Now != enginetest.Start || *req.Options.MaxTokens != limit {
		t.Errorf("the request is %+v", req)
	}
}

// intendedOutputLimit is the smallest of what is set, at least 1 (D36).
func TestMaxOutput(t *testing.T) {
	for _, tt := range []struct {
		name             string
		window, modelMax int64
		option           int64 // 0: not set
		prompt           int   // characters
		want             int64
	}{
		{"the model's limit", 100_000, 8_000, 0, 4, 8_000},
		{"the option, when it is less", 100_000, 8_000, 500, 4, 500},
		{"not the option, when it is more", 100_000, 8_000, 9_000, 4, 8_000},
		{"what the input leaves of the window", 2_000, 8_000, 0, 4_000, 1_000},
		{"a model without a limit", 2_000, 0, 0, 4_000, 1_000},
		{"never less than one", 100, 8_000, 0, 4_000, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := enginetest.InMemory(t)
			w.Model.ModelInfo.ContextWindow, w.Model.ModelInfo.MaxTokens = tt.window, tt.modelMax
			if tt.option > 0 {
				w.Options.StreamOptions.MaxTokens = &tt.option
			}
			w.Open()
			w.Prompt(strings.Repeat("x", tt.prompt))
			if got := w.Model.Requests()[0].MaxOutput; got != tt.want {
				t.Errorf("at most %d tokens, want %d", got, tt.want)
			}
		})
	}
}
