package message

import "encoding/json"

// StreamOptions are the request options a session may set (spec §0.7). Deferred
// is false, true or {"window": …}; structural requests force it to false.
type StreamOptions struct {
	MaxTokens   *int64          `json:"maxTokens,omitempty"`
	Temperature *float64        `json:"temperature,omitempty"`
	Deferred    json.RawMessage `json:"deferred,omitempty"`
}

// ToolSpec describes a tool to a model; Parameters is its JSON schema.
type ToolSpec struct {
	Name        string
	Description string
	Parameters  json.RawMessage
}

// ToolResult is the outcome of one tool call (spec §3.8).
type ToolResult struct {
	Content        []Block
	Details        json.RawMessage
	IsError        bool
	Usage          *Usage // of models the tool asked itself
	AddedToolNames []string
	Terminate      bool // the run ends after this batch
}
