package scripted

// Field is one field of a script, for people.
type Field struct {
	Of   string // the kind of object that has it
	Name string
	What string
}

// Fields are all fields that a script may have, objects after what holds them.
func Fields() []Field {
	return []Field{
		{"a script", "model", "limits of the model"},
		{"a script", "responses", "the answers, in order, one for each request"},
		{"model", "context_window", "tokens (200000)"},
		{"model", "max_tokens", "the longest answer in tokens (32000)"},
		{"model", "reasoning", "whether it can think (true)"},
		{"a response", "text", "the answer"},
		{"a response", "thinking", "what it thinks before the answer"},
		{"a response", "chunk", "characters in a piece of the stream (16)"},
		{"a response", "delay_ms", "milliseconds between two pieces"},
		{"a response", "hang_ms", "milliseconds before the first piece; with nothing after them the request times out"},
		{"a response", "tool_calls", "a list of tools to call after the text"},
		{"a response", "usage", "what it cost; tokens that are not given are estimated"},
		{"a response", "stop", "why it ends: stop, length (it was cut off) or toolUse"},
		{"a response", "error", "it fails, after its text"},
		{"a response", "deferred", "the answer comes later: the next response answers the poll, unless it is deferred too"},
		{"a tool call", "id", "its id (call_RESPONSE_CALL)"},
		{"a tool call", "name", "the tool, such as bash"},
		{"a tool call", "arguments", "the tool's, an object"},
		{"usage", "input", "tokens"},
		{"usage", "output", "tokens"},
		{"usage", "cacheRead", "tokens"},
		{"usage", "cacheWrite", "tokens"},
		{"usage", "cacheWrite1h", "tokens"},
		{"usage", "reasoning", "tokens"},
		{"usage", "totalTokens", "tokens (the sum)"},
		{"usage", "cost", "dollars"},
		{"cost", "input", "dollars"},
		{"cost", "output", "dollars"},
		{"cost", "cacheRead", "dollars"},
		{"cost", "cacheWrite", "dollars"},
		{"cost", "total", "dollars (the sum)"},
		{"error", "message", "what the provider says"},
		{"error", "retryable", "whether the request may be repeated (false)"},
		{"error", "status", "its HTTP status, 100 to 599"},
		{"error", "retry_after_ms", "the wait that the provider asks for"},
		{"error", "usage", "what it cost all the same"},
		{"deferred", "id", "the name of the job"},
		{"deferred", "poll_after_ms", "milliseconds until it may be asked for, each time (60000); a job keeps what its first response says"},
	}
}

// Example is a script that shows most of the fields.
func Example() string {
	return `responses:
  - text: "Let me look."          # streamed 8 characters at a time
    thinking: "They want a list."
    chunk: 8
    delay_ms: 100
    tool_calls: [{name: bash, arguments: {command: "ls"}}]
    usage: {input: 1200, output: 40}
  - error: {message: "429 too many requests", retryable: true, retry_after_ms: 500}
  - text: "Two files."            # the retry gets this one
  - deferred: {id: job-1, poll_after_ms: 5000}
  - text: "It took a while."      # the answer to the poll
  - {text: "cut", stop: length}
  - {hang_ms: 60000, text: "late"}
`
}
