package modeltest

import (
	"net/http"
	"slices"
	"testing"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
)

// Kit is what the suite needs of one provider.
type Kit struct {
	// New makes the provider. The endpoint's BaseURL is the test server's, to
	// which New adds the path that the provider's addresses have.
	New func(model.Endpoint) model.Provider
	// Path is the path that generations are requested at.
	Path string
	// Key reads the secret from a request's headers.
	Key func(http.Header) string

	// Render writes a script as the server's events, each with the blank line
	// that ends it.
	Render func(Script) []string
	// Refuse is the body of a response with that status and these words.
	Refuse func(status int, text string) string
	// Fail is the event that ends a stream with an error of that class and these
	// words; it is called with the classes overloaded, rate_limit, server and
	// overflow.
	Fail func(class, text string) string
	// Read reads a request body.
	Read func(t *testing.T, body []byte) Asked

	// CallID is the server's id of a call, by the stored one; nil when they are the
	// same.
	CallID func(stored string) string

	// Stops are stop reasons in the server's words, and what becomes of them.
	Stops []Stop
	// Overflows are words for a request that is too long.
	Overflows []string
	// Brief spares the longest answer, which another kit of the provider gives.
	Brief bool
	// Lacks names what the interface cannot express.
	Lacks []Feature
}

// Stop is a stop reason in the server's words.
type Stop struct {
	Raw  string
	Want message.StopReason // error: with a message that is not retryable
}

// Feature is something that not every interface can express.
type Feature string

// The features that a kit may lack.
const (
	Thinking         Feature = "thinking that is streamed"
	Signatures       Feature = "signed thinking that goes back unchanged"
	Redacted         Feature = "thinking whose content is for the provider only"
	SeveralBlocks    Feature = "several blocks of text or thinking side by side"
	ErrorResults     Feature = "results that say they are errors"
	ToolResultImages Feature = "images in tool results; they go along as the user's"
	CacheReads       Feature = "cache reads in usage"
	CacheWrites      Feature = "cache writes in usage"
	Reasoning        Feature = "reasoning in usage"
	Temperature      Feature = "a temperature"
	Levels           Feature = "thinking levels in requests"
	OwnEnd           Feature = "an end that a cut stream lacks"
)

func (k Kit) has(f Feature) bool { return !slices.Contains(k.Lacks, f) }

func (k Kit) need(t *testing.T, f Feature) {
	t.Helper()
	if !k.has(f) {
		t.Skipf("the interface lacks %s", f)
	}
}

// Script is an answer as the server sends it.
type Script struct {
	ID, Model string
	Steps     []Step
	// Usage counts tokens: Input without cache reads and writes, Reasoning as a
	// part of Output. Its cost is not set.
	Usage message.Usage
	Stop  message.StopReason // stop, length or toolUse
	// RawStop is the server's own word, when it is not the usual one for Stop.
	RawStop string
}

// Op is what a step does.
type Op int

// The steps: blocks open in the order of their numbers, grow, are signed, close.
const (
	Open Op = iota
	Delta
	Sign
	Close
)

// Step is one thing that the server says.
type Step struct {
	Op    Op
	Block int
	// Type is the block's, in every step.
	Type message.BlockType
	// Text is the delta (WTF-8: half of a character may be there as a surrogate),
	// the signature, or the data of redacted thinking at its Open.
	Text     string
	ID, Name string // of a tool call, in every step
	Redacted bool
}

// Blocks are the blocks that the script adds up to.
func (s Script) Blocks() []message.Block {
	var all []message.Block
	var deltas [][]string // by block; joined at the end, as an answer may be huge
	for _, step := range s.Steps {
		switch step.Op {
		case Open:
			b := message.Block{Type: step.Type, ID: step.ID, Name: step.Name, Redacted: step.Redacted}
			if step.Redacted {
				b.ThinkingSignature = step.Text
			}
			all, deltas = append(all, b), append(deltas, nil)
		case Delta:
			deltas[step.Block] = append(deltas[step.Block], step.Text)
		case Sign:
			all[step.Block].ThinkingSignature = step.Text
		case Close:
		}
	}
	for i := range all {
		text := rawjson.JoinText(deltas[i]...)
		switch b := &all[i]; b.Type {
		case message.BlockText:
			b.Text = text
		case message.BlockThinking:
			b.Thinking = text
		case message.BlockToolCall:
			b.Arguments = []byte(text)
		}
	}
	return all
}

// Asked is a request, read from its body.
type Asked struct {
	Model       string
	System      string
	Said        []Said
	Tools       []message.ToolSpec
	MaxTokens   int64
	Temperature *float64
	// Thinking is how much thinking is asked for, in the server's words; "" when
	// none is.
	Thinking string
	Stream   bool
}

// Said is one message of a request or a part of one: how blocks are grouped
// does not matter.
type Said struct {
	Role    message.Role // user, assistant or toolResult
	CallID  string       // of a result
	IsError bool
	Blocks  []message.Block
}
