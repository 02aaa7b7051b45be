package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/drover-run/drover/internal/rawjson"
)

const (
	draft7    = "http://json-schema.org/draft-07/schema#"
	draft2020 = "https://json-schema.org/draft/2020-12/schema"
)

// Schema checks the arguments of a tool (D46). It may be shared.
type Schema struct {
	resolved  *jsonschema.Resolved
	canonical json.RawMessage // what the validator understood, for explanations
	unchecked []*PatternError
}

// PatternError is a regular expression that this program cannot run: JSON
// schemas allow more than Go's matcher does.
type PatternError struct {
	Pattern string
	Err     error
}

func (e *PatternError) Error() string {
	return fmt.Sprintf("pattern %q cannot be checked: %v", e.Pattern, e.Err)
}

func (e *PatternError) Unwrap() error { return e.Err }

// ArgumentError says in one sentence what is wrong with a value: where it is and
// what type it has.
type ArgumentError struct {
	Path string // such as $.edits[1].oldText
	Msg  string // continues the path to a sentence
}

func (e *ArgumentError) Error() string { return e.Path + " " + e.Msg }

// Compile prepares a schema, which must be valid by its own meta-schema: draft
// 2020-12, or draft 7 when $schema says so or when, without $schema, the text
// is valid by that one only. References stay within the schema. A pattern that
// cannot be run is left out and reported by Unchecked.
func Compile(raw json.RawMessage) (*Schema, error) {
	if err := rawjson.Valid(raw); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	draft, err := checkDraft(raw)
	if err != nil {
		return nil, fmt.Errorf("check schema: %w", err)
	}
	s, err := compile(raw, draft)
	if err != nil {
		return nil, fmt.Errorf("resolve schema: %w", err)
	}
	return s, nil
}

// Unchecked returns the patterns that Validate ignores.
func (s *Schema) Unchecked() []*PatternError { return s.unchecked }

// Validate checks args and changes nothing. The error is an *ArgumentError
// unless args is not JSON.
func (s *Schema) Validate(args json.RawMessage) error {
	if err := rawjson.Valid(args); err != nil {
		return fmt.Errorf("read arguments: %w", err)
	}
	var v any
	if err := json.Unmarshal(args, &v); err != nil {
		return fmt.Errorf("read arguments: %w", err) // a number out of range, too deep a nesting
	}
	err := s.resolved.Validate(v)
	if err == nil {
		return nil
	}
	args = bytes.TrimSpace(args)
	e := explainer{root: s.canonical}
	if why := e.problem(s.canonical, args, "$", 0); why != nil {
		return why
	}
	return &ArgumentError{Path: "$", Msg: fmt.Sprintf("is %s that does not fit the schema (%s)", describe(args), lastCause(err))}
}

// lastCause cuts the chain of schema locations off a validator's error.
func lastCause(err error) string {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	msg, _, _ := strings.Cut(err.Error(), "\n")
	return clip(msg, 200)
}

// checkDraft validates raw against the meta-schema and returns its draft.
func checkDraft(raw json.RawMessage) (string, error) {
	said, ok := rawjson.Get(raw, "$schema")
	if !ok {
		err := checkMeta(raw, draft2020)
		if err != nil && checkMeta(raw, draft7) == nil {
			return draft7, nil
		}
		return draft2020, err
	}
	id, _ := rawjson.Unquote(said)
	for _, draft := range []string{draft7, draft2020} {
		if normalDraft(id) == normalDraft(draft) {
			return draft, checkMeta(raw, draft)
		}
	}
	return "", &ArgumentError{Path: "$.$schema", Msg: fmt.Sprintf("is %s; only draft-07 and draft 2020-12 are supported", describe(said))}
}

// normalDraft drops what writers vary in the name of a draft.
func normalDraft(id string) string {
	id = strings.TrimSuffix(id, "#")
	id = strings.TrimPrefix(id, "http:")
	return strings.TrimPrefix(id, "https:")
}

var metaSchemas = map[string]func() (*Schema, error){
	draft7:    sync.OnceValues(func() (*Schema, error) { return compile([]byte(metaSchema(true)), draft2020) }),
	draft2020: sync.OnceValues(func() (*Schema, error) { return compile([]byte(metaSchema(false)), draft2020) }),
}

func checkMeta(raw json.RawMessage, draft string) error {
	meta, err := metaSchemas[draft]()
	if err != nil {
		return err
	}
	return meta.Validate(raw)
}

// compile trusts raw to be valid by its meta-schema.
func compile(raw json.RawMessage, draft string) (*Schema, error) {
	var parsed jsonschema.Schema
	if err := json.Unmarshal(raw, &parsed); err != nil {
		return nil, err
	}
	parsed.Schema = draft
	parsed.ID = "" // a name for others to refer to; a relative one would not resolve
	s := &Schema{unchecked: dropPatterns(&parsed)}
	var err error
	if s.canonical, err = json.Marshal(&parsed); err != nil {
		return nil, err
	}
	if err := checkReferences(s.canonical); err != nil {
		return nil, err
	}
	if s.resolved, err = parsed.Resolve(nil); err != nil {
		return nil, err
	}
	return s, nil
}
