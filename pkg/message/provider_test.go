package message

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestToProviderRoles(t *testing.T) {
	const user = `{"role":"user","content":[{"type":"text","text":"hi"}],"x":1.0,"timestamp":5}`
	text := func(s string) string { return string(NewUser(s, nil, 5)) }
	tests := map[string]struct{ in, want string }{ // want "" is nothing
		"user":                    {user, user},
		"user without content":    {`{"role":"user","content":"","timestamp":5}`, ``},
		"user with broken blocks": {`{"role":"user","content":[5],"timestamp":5}`, ``},
		"assistant":               {`{"role":"assistant","content":[{"type":"text","text":"a"}],"stopReason":"error"}`, `{"role":"assistant","content":[{"type":"text","text":"a"}],"stopReason":"error"}`},
		"assistant of nothing":    {`{"role":"assistant","content":[],"stopReason":"stop"}`, ``},
		"assistant, no content":   {`{"role":"assistant","content":null}`, ``},
		"system":                  {`{"role":"system","sections":{"a":null}}`, `{"role":"system","sections":{"a":null}}`},
		"custom, text":            {`{"role":"custom","customType":"c","content":"\ud83d","display":false,"timestamp":5}`, `{"role":"user","content":"\ud83d","timestamp":5}`},
		"custom, blocks":          {`{"role":"custom","customType":"c","content":[{"type":"image","data":"","mimeType":"","x":1}],"timestamp":5}`, `{"role":"user","content":[{"type":"image","data":"","mimeType":"","x":1}],"timestamp":5}`},
		"custom of nothing":       {`{"role":"custom","customType":"c","content":null,"timestamp":5}`, ``},
		"unknown role":            {`{"role":"hookMessage","content":"a"}`, ``},
		"no message":              {`nonsense`, ``},
		"branch summary": {`{"role":"branchSummary","summary":"S","fromId":null,"timestamp":5}`,
			text("The conversation went down another branch for a while and then left it. What happened on the abandoned branch, in summary:\n\n<summary>\nS\n</summary>")},
		"compaction summary": {`{"role":"compactionSummary","summary":"S","tokensBefore":1,"timestamp":5}`,
			text("The conversation up to this point was compacted. This summary stands for the earlier messages:\n\n<summary>\nS\n</summary>")},
		"bash": {`{"role":"bashExecution","command":"ls","output":"a\nb\n","exitCode":0,"cancelled":false,"truncated":false,"timestamp":5}`,
			text("I ran a shell command:\n\n```\nls\n```\n\nIt printed:\n\n```\na\nb\n```\n\nExit code: 0")},
		"bash, cut": {`{"role":"bashExecution","command":"ls","output":"a","exitCode":1,"cancelled":false,"truncated":true,"fullOutputPath":"/tmp/o","timestamp":5}`,
			text("I ran a shell command:\n\n```\nls\n```\n\nIt printed:\n\n```\na\n```\n\nExit code: 1\n\nThe output above is truncated. All of it is in /tmp/o")},
		"bash, cancelled": {`{"role":"bashExecution","command":"ls","output":"","exitCode":null,"cancelled":true,"truncated":false,"timestamp":5}`,
			text("I ran a shell command:\n\n```\nls\n```\n\nIt printed nothing.\n\nIt was cancelled before it ended.")},
		"bash with fences": {`{"role":"bashExecution","command":"cat x","output":"` + "````go\\n```" + `","timestamp":5}`,
			text("I ran a shell command:\n\n```\ncat x\n```\n\nIt printed:\n\n`````\n````go\n```\n`````")},
		"bash, excluded": {`{"role":"bashExecution","command":"ls","output":"","excludeFromContext":true,"timestamp":5}`, ``},
	}
	for name, tt := range tests {
		var want []string
		if tt.want != "" {
			want = []string{tt.want}
		}
		if diff := cmp.Diff(want, texts(ToProvider([]Message{Message(tt.in)}))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func texts(msgs []Message) (out []string) {
	for _, m := range msgs {
		out = append(out, string(m))
	}
	return out
}

// asks is an assistant message with a call of each id, in short.
func asks(ids ...string) Message {
	a := Assistant{StopReason: StopToolUse, Timestamp: 9, Content: []Block{TextBlock("t")}}
	for i, id := range ids {
		a.Content = append(a.Content, Block{Type: BlockToolCall, ID: id, Name: fmt.Sprintf("tool%d", i)})
	}
	return a.Message()
}

func answers(id, text string) Message {
	return NewToolResult(id, "tool", ToolResult{Content: []Block{TextBlock(text)}}, 9)
}

func TestHeal(t *testing.T) {
	hi := NewUser("hi", nil, 9)
	lost := func(id, tool string) Message {
		return Message(`{"role":"toolResult","toolCallId":"` + id + `","toolName":"` + tool + `","content":[{"type":"text",` +
			`"text":"No result of this call was recorded. It may or may not have run."}],"details":{"synthetic":"missing_result"},"isError":true,"timestamp":9}`)
	}
	tests := map[string]struct{ in, want []Message }{
		"nothing":                       {nil, nil},
		"paired":                        {[]Message{hi, asks("a", "b"), answers("a", "1"), answers("b", "2"), hi}, []Message{hi, asks("a", "b"), answers("a", "1"), answers("b", "2"), hi}},
		"no result":                     {[]Message{asks("a"), hi}, []Message{asks("a"), lost("a", "tool0"), hi}},
		"no result at the end":          {[]Message{hi, asks("a", "b"), answers("b", "2")}, []Message{hi, asks("a", "b"), lost("a", "tool0"), answers("b", "2")}},
		"orphans":                       {[]Message{answers("a", "1"), hi, asks("b"), answers("b", "2"), answers("c", "3")}, []Message{hi, asks("b"), answers("b", "2")}},
		"a second result":               {[]Message{asks("a"), answers("a", "1"), answers("a", "2")}, []Message{asks("a"), answers("a", "1")}},
		"a result after the next":       {[]Message{asks("a"), asks("b"), answers("a", "1"), answers("b", "2")}, []Message{asks("a"), lost("a", "tool0"), asks("b"), answers("b", "2")}},
		"a message between":             {[]Message{asks("a"), hi, answers("a", "1")}, []Message{asks("a"), answers("a", "1"), hi}},
		"results out of order":          {[]Message{asks("a", "b"), answers("b", "2"), answers("a", "1")}, []Message{asks("a", "b"), answers("a", "1"), answers("b", "2")}},
		"empty ids":                     {[]Message{asks("", ""), answers("", "1"), answers("", "2")}, []Message{asks("call_1", "call_2"), answers("call_1", "1"), answers("call_2", "2")}},
		"an empty id, no result":        {[]Message{asks("")}, []Message{asks("call_1"), lost("call_1", "tool0")}},
		"one id twice":                  {[]Message{asks("x", "x"), answers("x", "1"), answers("x", "2")}, []Message{asks("x", "call_2"), answers("x", "1"), answers("call_2", "2")}},
		"an id of an earlier turn":      {[]Message{asks("x"), answers("x", "1"), asks("x"), answers("x", "2")}, []Message{asks("x"), answers("x", "1"), asks("call_2"), answers("call_2", "2")}},
		"a fresh id that is taken":      {[]Message{asks("call_2"), answers("call_2", "1"), asks(""), answers("", "2")}, []Message{asks("call_2"), answers("call_2", "1"), asks("call_2_"), answers("call_2_", "2")}},
		"an id that was made up before": {[]Message{asks(""), answers("", "1"), asks("call_1"), answers("call_1", "2")}, []Message{asks("call_1"), answers("call_1", "1"), asks("call_2"), answers("call_2", "2")}},
	}
	for name, tt := range tests {
		before := texts(tt.in)
		if diff := cmp.Diff(texts(tt.want), texts(Heal(tt.in))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(before, texts(tt.in)); diff != "" {
			t.Errorf("%s: the input changed: %s", name, diff)
		}
	}
}

func TestHealKeepsUnknownMembers(t *testing.T) {
	m := Message(`{"role":"assistant","x":1.0,"content":[{"z":1,"type":"toolCall","id":"","name":"n","arguments":{"a":1.0}}],"stopReason":"toolUse"}`)
	got := Heal([]Message{m, Message(`{"toolCallId":"","role":"toolResult","y":2.0}`)})
	want := []string{
		`{"role":"assistant","x":1.0,"content":[{"z":1,"type":"toolCall","id":"call_1","name":"n","arguments":{"a":1.0}}],"stopReason":"toolUse"}`,
		`{"toolCallId":"call_1","role":"toolResult","y":2.0}`,
	}
	if diff := cmp.Diff(want, texts(got)); diff != "" {
		t.Error(diff)
	}
}

// strict refuses what the strictest provider refuses.
func strict(msgs []Message) error {
	seen := map[string]bool{}
	for i := 0; i < len(msgs); i++ {
		if msgs[i].Role() == RoleToolResult {
			return fmt.Errorf("message %d: a result that nothing asked for", i)
		}
		calls := msgs[i].ToolCalls()
		open := map[string]bool{}
		for _, c := range calls {
			if c.ID == "" || seen[c.ID] {
				return fmt.Errorf("message %d: call id %q", i, c.ID)
			}
			seen[c.ID], open[c.ID] = true, true
		}
		for range calls {
			i++
			if i == len(msgs) || msgs[i].Role() != RoleToolResult {
				return fmt.Errorf("message %d: a call without a result", i)
			}
			id := msgs[i].str("toolCallId")
			if !open[id] {
				return fmt.Errorf("message %d: a result for %q", i, id)
			}
			delete(open, id)
		}
	}
	return nil
}

func TestHealSatisfiesTheStrictest(t *testing.T) {
	id := rapid.SampledFrom([]string{"", "a", "b", "call_1", "call_2"})
	messages := rapid.SliceOf(rapid.OneOf(
		rapid.Just(NewUser("hi", nil, 1)),
		rapid.Map(rapid.SliceOfN(id, 0, 3), func(ids []string) Message { return asks(ids...) }),
		rapid.Map(id, func(id string) Message { return answers(id, "r") }),
	))
	rapid.Check(t, func(t *rapid.T) {
		in := messages.Draw(t, "messages")
		out := Heal(in)
		if err := strict(out); err != nil {
			t.Fatalf("%v in %q", err, texts(out))
		}
		if again := Heal(out); !cmp.Equal(texts(out), texts(again)) {
			t.Fatalf("healed twice: %s", cmp.Diff(texts(out), texts(again)))
		}
		// What stands before an assistant message does not depend on what comes after.
		for n := range in {
			if in[n].Role() == RoleAssistant {
				head := Heal(in[:n])
				for i, m := range head {
					if !bytes.Equal(m, out[i]) {
						t.Fatalf("message %d changed when the request grew", i)
					}
				}
			}
		}
	})
}
