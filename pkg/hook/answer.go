package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/message"
)

// answer is what a program said: the fields of a JSON object. A field that is null
// is as good as none.
type answer map[string]json.RawMessage

// parseAnswer reads the output of a program at a point. It may be the event itself,
// changed: of that the fields that no answer has are passed over. Any other field is
// refused, since it would be ignored silently.
func (p Point) parseAnswer(out []byte) (answer, error) {
	if len(bytes.TrimSpace(out)) == 0 {
		return nil, nil
	}
	if at := rawjson.ValidUTF8(out); at >= 0 {
		return nil, fmt.Errorf("its answer is not UTF-8 at byte %d", at)
	}
	raw, err := rawjson.Compacted(out)
	if err != nil {
		return nil, fmt.Errorf("its answer is not JSON: %w", err)
	}
	if rawjson.KindOf(raw) != rawjson.Object {
		return nil, errors.New("its answer is no JSON object")
	}
	return members(raw, "its answer", p.shape().Answer, slices.Concat(Common(), p.shape().Event))
}

// members are the fields of an object: those that are known, but not those that are
// passed over.
func members(raw json.RawMessage, what string, known, passed []string) (answer, error) {
	all := answer{}
	for m, err := range rawjson.Members(raw) {
		if err != nil {
			return nil, err
		}
		name, err := rawjson.Unquote(m.Key)
		switch {
		case err != nil:
			return nil, err
		case !slices.Contains(known, name) && slices.Contains(passed, name):
		case !slices.Contains(known, name):
			return nil, fmt.Errorf("%s has the unknown field %q; the fields are: %s", what, name, listed(known))
		case rawjson.KindOf(m.Value) != rawjson.Null:
			all[name] = json.RawMessage(m.Value)
		}
	}
	return all, nil
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// of checks that a field is of a kind; nil when it is not there.
func (a answer) of(name string, kind rawjson.Kind, what string) (json.RawMessage, error) {
	raw, ok := a[name]
	if ok && rawjson.KindOf(raw) != kind {
		return nil, fmt.Errorf("%s must be %s", name, what)
	}
	return raw, nil
}

// text is a field of characters; false when it is not there.
func (a answer) text(name string) (string, bool, error) {
	raw, err := a.of(name, rawjson.String, "text")
	if raw == nil || err != nil {
		return "", false, err
	}
	s, err := rawjson.Unquote(raw)
	if err == nil && !utf8.ValidString(s) {
		err = fmt.Errorf("%s has half a character", name)
	}
	return s, true, err
}

// flag is a field that is true or false; nil when it is not there.
func (a answer) flag(name string) (*bool, error) {
	raw, err := a.of(name, rawjson.Bool, "true or false")
	if raw == nil || err != nil {
		return nil, err
	}
	b := raw[0] == 't'
	return &b, nil
}

func (a answer) usage(name string) (*message.Usage, error) {
	raw, err := a.of(name, rawjson.Object, "a usage object")
	if raw == nil || err != nil {
		return nil, err
	}
	u, err := message.ParseUsage(raw)
	if err != nil {
		return nil, err
	}
	return &u, u.Check()
}

// messages is a list of messages, each of which could be placed in a session; nil
// when it is not there. Those without a time get now, Unix ms.
func (a answer) messages(name string, now int64) ([]message.Message, error) {
	raw, err := a.of(name, rawjson.Array, "a list of messages")
	if raw == nil || err != nil {
		return nil, err
	}
	all := []message.Message{}
	for element, err := range rawjson.Elements(raw) {
		if err != nil {
			return nil, err
		}
		m, err := message.Normalize(element, now)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", name, len(all), err)
		}
		all = append(all, m)
	}
	return all, nil
}

// content is the content of a tool result; nil when it is not there.
func (a answer) content(name string) ([]message.Block, error) {
	raw, err := a.of(name, rawjson.Array, "a list of content blocks")
	if raw == nil || err != nil {
		return nil, err
	}
	blocks := []message.Block{}
	for element, err := range rawjson.Elements(raw) {
		if err != nil {
			return nil, err
		}
		b, err := message.ParseBlock(element)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", name, len(blocks), err)
		}
		blocks = append(blocks, b)
	}
	return blocks, message.Validate(message.NewToolResult("", "", message.ToolResult{Content: blocks}, 0))
}

// decision is an answer about a tool call.
func (a answer) decision() (engine.ToolDecision, error) {
	args, err := a.of("args", rawjson.Object, "an object")
	d := engine.ToolDecision{Args: args}
	if err != nil {
		return d, err
	}
	raw, err := a.of("block", rawjson.Object, `an object, as {"reason":"…"}`)
	if raw == nil || err != nil {
		return d, err
	}
	block, err := members(raw, "block", []string{"reason", "terminate"}, nil)
	if err != nil {
		return d, err
	}
	if d.Block, _, err = block.text("reason"); err == nil && d.Block == "" {
		err = errors.New("block has no reason")
	}
	if terminate, bad := block.flag("terminate"); bad != nil {
		err = bad
	} else {
		d.Terminate = terminate != nil && *terminate
	}
	return d, err
}

// patch is an answer about a tool result.
func (a answer) patch() (p engine.ToolPatch, err error) {
	p.Details = a["details"]
	if p.Content, err = a.content("content"); err != nil {
		return p, err
	}
	if p.IsError, err = a.flag("isError"); err != nil {
		return p, err
	}
	if p.Usage, err = a.usage("usage"); err != nil {
		return p, err
	}
	p.Terminate, err = a.flag("terminate")
	return p, err
}

// options is an answer about a request; nil changes nothing.
func (a answer) options() (*message.StreamOptions, error) {
	raw, err := a.of("streamOptions", rawjson.Object, "an object")
	if raw == nil || err != nil {
		return nil, err
	}
	if _, err := members(raw, "streamOptions", []string{"maxTokens", "temperature", "deferred"}, nil); err != nil {
		return nil, err
	}
	var o message.StreamOptions
	err = json.Unmarshal(raw, &o)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		want := map[string]string{"maxTokens": "a whole number", "temperature": "a number"}[wrong.Field]
		return nil, fmt.Errorf("streamOptions.%s is %s, want %s", wrong.Field, wrong.Value, want)
	}
	if err != nil {
		return nil, fmt.Errorf("streamOptions: %w", err)
	}
	if o.MaxTokens != nil && *o.MaxTokens < 1 {
		return nil, errors.New("streamOptions.maxTokens must be 1 or more")
	}
	switch rawjson.KindOf(o.Deferred) {
	case rawjson.Bool, rawjson.Object, rawjson.Null:
		return &o, nil
	}
	if o.Deferred == nil {
		return &o, nil
	}
	return nil, errors.New("streamOptions.deferred must be true, false or an object")
}

// summary is an answer about a summary, which stands in the field of that name.
func (a answer) summary(name string) (engine.SummaryDecision, error) {
	var d engine.SummaryDecision
	decline, err := a.flag("decline")
	if err != nil {
		return d, err
	}
	d.Decline = decline != nil && *decline
	raw, err := a.of(name, rawjson.Object, `an object, as {"summary":"…"}`)
	if raw == nil || err != nil {
		return d, err
	}
	if d.Decline {
		return d, fmt.Errorf("it declines and gives a %s at once", name)
	}
	fields, err := members(raw, name, []string{"summary", "details", "usage"}, nil)
	if err != nil {
		return d, err
	}
	s := engine.SuppliedSummary{Details: fields["details"]}
	if s.Text, _, err = fields.text("summary"); err == nil && strings.TrimSpace(s.Text) == "" {
		err = fmt.Errorf("%s.summary is missing", name)
	}
	if err != nil {
		return d, err
	}
	s.Usage, err = fields.usage("usage")
	d.Summary = &s
	return d, err
}
