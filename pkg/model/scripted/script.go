package scripted

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/drover-run/drover/pkg/message"
)

// defaultChunk is how many characters a delta has when the script does not say.
const defaultChunk = 16

// ScriptError says where a script file is not what it must be.
type ScriptError struct {
	Path         string
	Line, Column int // from 1; the column counts characters
	Msg          string
}

func (e *ScriptError) Error() string {
	return fmt.Sprintf("script %s:%d:%d: %s", e.Path, e.Line, e.Column, e.Msg)
}

// script is a script file, decoded.
type script struct {
	limits
	path      string
	responses []response
}

// limits are what a script says about its model.
type limits struct {
	contextWindow, maxTokens int64 // tokens
	reasoning                bool
}

var defaultLimits = limits{contextWindow: 200_000, maxTokens: 32_000, reasoning: true}

// response is one item of a script.
type response struct {
	text, thinking string
	calls          []message.Block
	chunk          int           // characters a delta
	delay          time.Duration // between deltas
	hang           time.Duration // before the first event
	usage          usage
	stop           message.StopReason // empty: what the content says
	failure        *failure           // ends the response, after its content
	deferred       *job
}

// failure is the error that a response ends with.
type failure struct {
	message string
	info    message.ErrorInfo
	usage   usage
}

// job is an answer that is deferred.
type job struct {
	id        string
	pollAfter *int64 // ms
}

// usedUp is the error of a request beyond the last response (D50).
const usedUp = " has no response "

// UsedUp returns the script that an answer's error blames for having no response
// left; "" for any other error.
func UsedUp(message string) (path string) {
	named, number, ok := strings.Cut(message, usedUp)
	path, isScript := strings.CutPrefix(named, "script ")
	if _, err := strconv.Atoi(number); !ok || !isScript || err != nil {
		return ""
	}
	return path
}

// next takes the response to a new request.
func (s *script) next(ctx context.Context, pos *position) (response, error) {
	n, err := pos.take(ctx, len(s.responses))
	if err != nil {
		return response{}, err
	}
	if n >= len(s.responses) {
		return response{}, fmt.Errorf("script %s%s%d", s.path, usedUp, n+1)
	}
	return s.responses[n], nil
}

// parseScript decodes a script file, JSON or YAML. The error is a *ScriptError.
func parseScript(path string, text []byte) (*script, error) {
	root, err := parseTree(path, text)
	if err != nil {
		return nil, err
	}
	s := &script{path: path, limits: defaultLimits}
	d := decoder{path: path, lines: lineCount(string(text))}
	listed := false
	err = d.object(root, "a script",
		field{"model", d.limits(&s.limits)},
		field{"responses", func(name string, n *yaml.Node) error {
			listed = true
			return d.list(name, n, func(item *yaml.Node) error {
				r, err := d.response(item, len(s.responses)+1)
				s.responses = append(s.responses, r)
				return err
			})
		}})
	if err != nil {
		return nil, err
	}
	if !listed {
		return nil, d.errorf(root, "responses are missing")
	}
	return s, nil
}

// lineCount counts what YAML takes for lines.
func lineCount(text string) int {
	n := 1
	for _, r := range text {
		if strings.ContainsRune("\n\r\u0085\u2028\u2029", r) {
			n++
		}
	}
	return n
}

func (d decoder) limits(l *limits) setter {
	return func(_ string, n *yaml.Node) error {
		return d.object(n, "model",
			field{"context_window", d.whole(&l.contextWindow, 1)},
			field{"max_tokens", d.whole(&l.maxTokens, 1)},
			field{"reasoning", d.flag(&l.reasoning)})
	}
}

// response decodes the item with a number, from 1.
func (d decoder) response(n *yaml.Node, number int) (response, error) {
	r := response{chunk: defaultChunk}
	stop := ""
	err := d.object(n, "a response",
		field{"text", d.text(&r.text)},
		field{"thinking", d.text(&r.thinking)},
		field{"chunk", d.count(&r.chunk, 1)},
		field{"delay_ms", d.millis(&r.delay)},
		field{"hang_ms", d.millis(&r.hang)},
		field{"tool_calls", d.calls(&r.calls, number)},
		field{"usage", d.usage(&r.usage)},
		field{"stop", d.oneOf(&stop, message.StopStop, message.StopLength, message.StopToolUse)},
		field{"error", d.failure(&r.failure)},
		field{"deferred", d.deferred(&r.deferred)})
	if err != nil {
		return r, err
	}
	r.stop = message.StopReason(stop)
	if r.deferred != nil && (r.failure != nil || r.hasContent()) {
		return r, d.errorf(n, "a deferred response has no error and no content")
	}
	if r.stop != "" && (r.failure != nil || r.deferred != nil) {
		return r, d.errorf(n, "stop is not for an error or a deferred response")
	}
	return r, nil
}

func (r response) hasContent() bool {
	return r.text != "" || r.thinking != "" || len(r.calls) > 0
}

func (d decoder) calls(calls *[]message.Block, number int) setter {
	return func(name string, n *yaml.Node) error {
		return d.list(name, n, func(item *yaml.Node) error {
			call := message.Block{Type: message.BlockToolCall, Arguments: json.RawMessage("{}")}
			err := d.object(item, "a tool call",
				field{"id", d.text(&call.ID)},
				field{"name", d.text(&call.Name)},
				field{"arguments", d.arguments(&call.Arguments)})
			if err == nil && call.Name == "" {
				err = d.errorf(item, "the tool call has no name")
			}
			if call.ID == "" {
				call.ID = fmt.Sprintf("call_%d_%d", number, len(*calls)+1)
			}
			*calls = append(*calls, call)
			return err
		})
	}
}

func (d decoder) failure(to **failure) setter {
	return func(_ string, n *yaml.Node) error {
		f := &failure{}
		retryable, status := false, int64(0)
		err := d.object(n, "error",
			field{"message", d.text(&f.message)},
			field{"retryable", d.flag(&retryable)},
			field{"status", d.whole(&status, 100)},
			field{"retry_after_ms", d.whole(&f.info.RetryAfterMs, 0)},
			field{"usage", d.usage(&f.usage)})
		if err == nil && f.message == "" {
			err = d.errorf(n, "the error has no message")
		}
		if status > 599 {
			err = d.errorf(n, "the error's status is above 599")
		}
		f.info.Status = int(status)
		if retryable {
			f.info.Class = message.ClassRetryable
		}
		*to = f
		return err
	}
}

func (d decoder) deferred(to **job) setter {
	return func(_ string, n *yaml.Node) error {
		j := &job{}
		named, pollAfter := false, int64(-1)
		err := d.object(n, "deferred",
			field{"id", func(name string, n *yaml.Node) error {
				named = true
				return d.text(&j.id)(name, n)
			}},
			field{"poll_after_ms", d.whole(&pollAfter, 0)})
		if err == nil && !named {
			err = d.errorf(n, "the deferred response has no id")
		}
		if pollAfter >= 0 {
			j.pollAfter = &pollAfter
		}
		*to = j
		return err
	}
}
