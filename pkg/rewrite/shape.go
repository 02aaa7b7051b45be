package rewrite

import "github.com/drover-run/drover/pkg/store"

// shape says what the strings of a JSON value are: content, which may be
// replaced, or structure, which may not (D54).
type shape uint8

const (
	free       shape = iota // content: every string and every key
	fixed                   // structure
	reference               // the id of an entry
	leaf                    // the id of an entry, or null
	attachment              // base64, which nobody reads
	signature               // of a block: it goes when the block's text changes
	entryMessage
	entryCompaction
	entrySummary
	entryCustom
	aMessage
	messages
	blocks
	block
	usage
	usageDetails
	diagnostics
	diagnostic
	pendingEntry
	lastResult
	lastError
	headerSource
	headerSpawn
)

// shapeOfEntry is that of an entry's payload.
func shapeOfEntry(t store.EntryType) shape {
	switch t {
	case store.TypeMessage:
		return entryMessage
	case store.TypeCompaction:
		return entryCompaction
	case store.TypeBranchSummary:
		return entrySummary
	}
	return entryCustom
}

// shapeOfValue is that of a value or a list element. A reserved namespace that
// nobody knows holds content, like an application's.
func shapeOfValue(a store.Address) shape {
	switch a.Namespace {
	case "pi.lane.leaf":
		return leaf
	case "pi.lane.config", "pi.lane.state":
		return fixed
	case "pi.lane.lastResult":
		return lastResult
	case "pi.pending.entry":
		return pendingEntry
	}
	return free
}

// element is the shape of the elements of an array.
func (s shape) element() shape {
	switch s {
	case messages:
		return aMessage
	case blocks:
		return block
	case diagnostics:
		return diagnostic
	}
	return free
}

// field is the shape of an object's member. A name that is not known is content,
// and so is what it names.
func (s shape) field(key string) (next shape, known bool) {
	switch s {
	case entryMessage, entryCompaction, entrySummary, entryCustom:
		return entryField(key)
	case aMessage:
		return messageField(key)
	case block:
		return blockField(key)
	case usage:
		return usageField(key)
	case usageDetails:
		return fixed, key == "attribution"
	case diagnostic:
		return diagnosticField(key)
	case pendingEntry:
		return fixed, key == "type" || key == "customType"
	case lastResult:
		return lastResultField(key)
	case lastError:
		return fixed, key == "code"
	case headerSource:
		return fixed, key == "format" || key == "id" || key == "sha256" || key == "bytes" || key == "version"
	case headerSpawn:
		return fixed, key == "parentSessionId" || key == "rootSessionId" || key == "depth" || key == "refKey" || key == "location"
	}
	return free, false
}

func diagnosticField(key string) (shape, bool) {
	switch key {
	case "type", "class", "status", "retryAfterMs", "requested", "used", "count":
		return fixed, true
	}
	return free, key == "message"
}

func entryField(key string) (shape, bool) {
	switch key {
	case "message":
		return aMessage, true
	case "summary", "details", "data":
		return free, true
	case "retainedTail":
		return messages, true
	case "usage":
		return usage, true
	case "fromId", "firstKeptEntryId":
		return reference, true
	case "terminate", "tokensBefore", "fromHook":
		return fixed, true
	}
	return free, false
}

func messageField(key string) (shape, bool) {
	switch key {
	case "content":
		return blocks, true
	case "errorMessage", "details", "command", "output", "summary", "fullOutputPath", "sections":
		return free, true
	case "usage":
		return usage, true
	case "diagnostics":
		return diagnostics, true
	case "fromId":
		return reference, true
	case "role", "api", "provider", "model", "responseModel", "responseId", "stopReason", "rawStopReason", "deferred",
		"toolCallId", "toolName", "addedToolNames", "customType", "timestamp", "isError", "display", "exitCode",
		"cancelled", "truncated", "excludeFromContext", "tokensBefore":
		return fixed, true
	}
	return free, false
}

func blockField(key string) (shape, bool) {
	switch key {
	case "text", "thinking", "arguments":
		return free, true
	case "data":
		return attachment, true
	case "type", "id", "name", "mimeType", "namespace", "redacted":
		return fixed, true
	case "textSignature", "thinkingSignature", "thoughtSignature":
		return signature, true
	}
	return free, false
}

func usageField(key string) (shape, bool) {
	switch key {
	case "cost":
		return usage, true
	case "input", "output", "cacheRead", "cacheWrite", "cacheWrite1h", "reasoning", "totalTokens", "total":
		return fixed, true
	}
	return free, false
}

func lastResultField(key string) (shape, bool) {
	switch key {
	case "leafId", "oldLeafId":
		return leaf, true
	case "finalAssistantEntryId", "summaryEntryId":
		return reference, true
	case "error":
		return lastError, true
	case "operationId", "kind", "outcome", "runCompletion":
		return fixed, true
	}
	return free, false
}

// signatures are the members of a block that vouch for its text.
func signatures() []string { return []string{"textSignature", "thinkingSignature", "thoughtSignature"} }
