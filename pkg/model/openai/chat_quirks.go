package openai

// Quirks say how a server differs from OpenAI's Chat Completions. The zero value
// suits most servers.
type Quirks struct {
	// TokenField names the output limit in a request: TokensClassic, which is the
	// default, or TokensModern.
	TokenField string
	// SystemRole is the role of the system prompt: system, which is the default,
	// or developer.
	SystemRole string
	// NoStreamOptions is for servers that refuse to be asked for usage; they may
	// send it all the same.
	NoStreamOptions bool
	// ReasoningField is where thinking comes in answers: ReasoningContent,
	// Reasoning or ReasoningNone. By default the first that is there counts.
	ReasoningField string
	// ReasoningBack is for servers that want a model's own thinking back. It goes
	// in ReasoningField, by default in reasoning_content.
	ReasoningBack bool
	// Effort is how a thinking level is asked for: EffortFlat, which is the
	// default, EffortNested or EffortNone.
	Effort string
	// NoEnd is for servers that close an answer without a finish reason and
	// without [DONE]. A stream that was cut off then cannot be told from one that
	// ended.
	NoEnd bool
}

// The values of quirks.
const (
	TokensClassic = "max_tokens"
	TokensModern  = "max_completion_tokens"

	RoleSystem    = "system"
	RoleDeveloper = "developer"

	ReasoningContent = "reasoning_content"
	Reasoning        = "reasoning"
	ReasoningNone    = "none"

	EffortFlat   = "reasoning_effort" // "reasoning_effort": "high"
	EffortNested = "reasoning"        // "reasoning": {"effort": "high"}
	EffortNone   = "none"
)

func (q Quirks) tokenField() string { return or(q.TokenField, TokensClassic) }
func (q Quirks) systemRole() string { return or(q.SystemRole, RoleSystem) }
func (q Quirks) effort() string     { return or(q.Effort, EffortFlat) }

// reasoningFields are the fields that thinking may come in.
func (q Quirks) reasoningFields() []string {
	switch q.ReasoningField {
	case "":
		return []string{ReasoningContent, Reasoning}
	case ReasoningNone:
		return nil
	}
	return []string{q.ReasoningField}
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
