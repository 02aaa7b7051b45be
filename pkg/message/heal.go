package message

import (
	"strconv"

	"github.com/drover-run/drover/internal/rawjson"
)

// Heal pairs tool calls and results as providers demand: every call has exactly
// one result directly after its message, in the order of the calls, and call
// ids are unique and not empty. A call without a result gets an error result; a
// result without a call, or after an earlier one for the same call, is dropped;
// messages between a call and its result come after the result. Results belong
// to the assistant message before them. Fresh ids depend only on messages
// further up: a request that grows at its tail keeps its head, which providers
// cache (spec §2.5). The inputs are not changed.
func Heal(msgs []Message) []Message {
	h := healer{out: make([]Message, 0, len(msgs)), seen: map[string]bool{}}
	roles := make([]Role, len(msgs))
	for i, m := range msgs {
		roles[i] = m.Role()
	}
	for i := 0; i < len(msgs); {
		end := i + 1
		if roles[i] != RoleAssistant {
			h.pass(msgs[i:end], roles[i:end])
			i = end
			continue
		}
		for end < len(msgs) && roles[end] != RoleAssistant {
			end++
		}
		h.turn(msgs[i], msgs[i+1:end], roles[i+1:end])
		i = end
	}
	return h.out
}

// healer builds a healed request.
type healer struct {
	out   []Message
	seen  map[string]bool // call ids in the request so far
	calls int
}

// pass lets messages of those roles through, except results that nothing asked for.
func (h *healer) pass(msgs []Message, roles []Role) {
	for i, m := range msgs {
		if roles[i] != RoleToolResult {
			h.out = append(h.out, m)
		}
	}
}

// turn adds an assistant message and what follows it up to the next one.
func (h *healer) turn(m Message, after []Message, roles []Role) {
	calls := m.ToolCalls()
	results := pair(calls, after, roles)
	renamed := false
	for i := range calls {
		id := h.uniqueID(calls[i].ID)
		if id != calls[i].ID {
			calls[i].Raw = setString(calls[i].Raw, "id", id)
			renamed = true
			if results[i] != nil {
				results[i] = setString(results[i], "toolCallId", id)
			}
			calls[i].ID = id
		}
		if results[i] == nil {
			results[i] = missingResult(calls[i], m.Timestamp())
		}
	}
	if renamed {
		m = withCalls(m, calls)
	}
	h.out = append(append(h.out, m), results...)
	h.pass(after, roles)
}

// pair finds the result of each call, nil without one. Calls that share an id,
// or have none, take results of that id in order.
func pair(calls []Block, after []Message, roles []Role) []Message {
	results := make([]Message, len(calls))
	for at, m := range after {
		if roles[at] != RoleToolResult {
			continue
		}
		id := m.str("toolCallId")
		for i := range calls {
			if results[i] == nil && calls[i].ID == id {
				results[i] = m
				break
			}
		}
	}
	return results
}

// uniqueID returns id, or a fresh one when it is empty or taken.
func (h *healer) uniqueID(id string) string {
	h.calls++
	if id == "" || h.seen[id] {
		id = "call_" + strconv.Itoa(h.calls)
		for h.seen[id] {
			id += "_"
		}
	}
	h.seen[id] = true
	return id
}

// missingResult is sent for a call whose result is not there.
func missingResult(call Block, timestamp int64) Message {
	return NewToolResult(call.ID, call.Name, ToolResult{
		Content: []Block{TextBlock("No result of this call was recorded. It may or may not have run.")},
		Details: []byte(`{"synthetic":"missing_result"}`),
		IsError: true,
	}, timestamp)
}

// withCalls returns the message with its tool calls replaced.
func withCalls(m Message, calls []Block) Message {
	content, _ := rawjson.Get(m, "content")
	var elements []Block
	// The calls came from this content: it is an array.
	_ = rawjson.ElementsFunc(content, func(start, end int) bool {
		b := Block{Raw: content[start:end]}
		if isBlock(b.Raw, BlockToolCall) {
			b, calls = calls[0], calls[1:]
		}
		elements = append(elements, b)
		return true
	})
	out, err := m.With("content", appendBlocks(nil, elements))
	if err != nil {
		return m
	}
	return out
}

// setString returns the valid object with a string member set.
func setString(obj []byte, field, value string) []byte {
	out, err := rawjson.Set(obj, field, rawjson.Quote(value))
	if err != nil {
		return obj
	}
	return out
}
