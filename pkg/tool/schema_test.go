package tool

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValidate(t *testing.T) {
	const editing = `{"type":"object","properties":{
		"path":{"type":"string","minLength":1,"maxLength":5,"pattern":"^[a-z]+$"},
		"mode":{"enum":["a",1,null]},
		"level":{"type":"integer","minimum":0,"exclusiveMaximum":10},
		"ratio":{"type":["number","null"],"maximum":1},
		"edits":{"type":"array","minItems":1,"maxItems":2,"items":{"$ref":"#/$defs/edit"}},
		"any":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"boolean"}}]},
		"a b":{"const":true}
	},"required":["path"],"additionalProperties":false,
	"$defs":{"edit":{"type":"object","properties":{"old":{"type":"string"}},"required":["old"]}}}`
	cases := []struct{ name, schema, args, want string }{
		{"fits", editing, `{"path":"x","edits":[{"old":"a","more":1}],"ratio":null,"level":3.0,"mode":null}`, ""},
		{"root type", editing, ` [1] `, `$ is an array that must be an object`},
		{"required", editing, `{}`, `$ is an object without the required member "path"`},
		{"type", editing, `{"path":5}`, `$.path is a number (5) that must be a string`},
		{"null type", editing, `{"path":null}`, `$.path is null that must be a string`},
		{"several types", editing, `{"path":"x","ratio":"high"}`, `$.ratio is a string ("high") that must be a number or null`},
		{"integer", editing, `{"path":"x","level":1.5}`, `$.level is a number (1.5) that must be an integer`},
		{"minimum", editing, `{"path":"x","level":-1}`, `$.level is a number (-1) that must be at least 0`},
		{"exclusive", editing, `{"path":"x","level":10}`, `$.level is a number (10) that must be less than 10`},
		{"maximum", editing, `{"path":"x","ratio":1.01}`, `$.ratio is a number (1.01) that must be at most 1`},
		{"enum", editing, `{"path":"x","mode":"b"}`, `$.mode is a string ("b") that is none of "a",1,null`},
		{"const", editing, `{"path":"x","a b":false}`, `$["a b"] is a boolean (false) that must be true`},
		{"short", editing, `{"path":""}`, `$.path is a string ("") of 0 characters that must have at least 1`},
		{"long", editing, `{"path":"äöüäöü"}`, `$.path is a string ("äöüäöü") of 6 characters that must have at most 5`},
		{"pattern", editing, `{"path":"X1"}`, `$.path is a string ("X1") that does not match "^[a-z]+$"`},
		{"element", editing, `{"path":"x","edits":[{"old":"a"},{"old":[]}]}`, `$.edits[1].old is an array that must be a string`},
		{"in element", editing, `{"path":"x","edits":[{}]}`, `$.edits[0] is an object without the required member "old"`},
		{"too few", editing, `{"path":"x","edits":[]}`, `$.edits is an array with 0 elements that must have at least 1`},
		{"too many", editing, `{"path":"x","edits":[{"old":""},{"old":""},{"old":""}]}`, `$.edits is an array with 3 elements that must have at most 2`},
		{"unknown member", editing, `{"path":"x","pth":1}`, `$.pth is a number (1) under an unknown name, known are a b, any, edits, level, mode, path, ratio`},
		{"alternative", editing, `{"path":"x","any":[true,7]}`, `$.any[1] is a number (7) that must be a boolean`},
		{"no alternative", editing, `{"path":"x","any":7}`, `$.any is a number (7) that fits none of the forms the schema allows`},
		{"long value", editing, `{"path":` + strings.Repeat("1", 100) + `}`, `$.path is a number (` + strings.Repeat("1", 60) + `…) that must be a string`},
		{"last duplicate", editing, `{"path":"x","path":5}`, `$.path is a number (5) that must be a string`},
		{"first duplicate", editing, `{"path":5,"path":"x"}`, ``},
		{"draft 7 tuple", `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}],"additionalItems":{"type":"null"}}`,
			`["a",null,1]`, `$[2] is a number (1) that must be null`},
		{"draft 7 by its shape", `{"items":[{"type":"string"}]}`, `[1]`, `$[0] is a number (1) that must be a string`},
		{"draft 7 reference", `{"$schema":"http://json-schema.org/draft-07/schema","$ref":"#/definitions/a","definitions":{"a":{"type":"null"}}}`,
			`1`, `$ is a number (1) that must be null`},
		{"tuple", `{"$schema":"https://json-schema.org/draft/2020-12/schema","prefixItems":[{"type":"string"}],"items":false}`,
			`["a",1]`, `$[1] is a number (1) that must not be there`},
		{"anchor", `{"$id":"tool.json","properties":{"a":{"$ref":"#x"}},"$defs":{"y":{"$anchor":"x","type":"null"}}}`,
			`{"a":1}`, `$.a is a number (1) that must be null`},
		{"recursive", `{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"next":{"$ref":"#/$defs/n"},"v":{"type":"null"}}}}}`,
			`{"next":{"next":{"v":1}}}`, `$.next.next.v is a number (1) that must be null`},
		{"pattern properties", `{"patternProperties":{"^x":{"type":"null"}},"additionalProperties":{"type":"string"}}`,
			`{"y":"","x1":1}`, `$.x1 is a number (1) that must be null`},
		{"multiple", `{"multipleOf":0.5}`, `1.2`, `$ is a number (1.2) that must be a multiple of 0.5`},
		{"two forms", `{"oneOf":[{"minimum":1},{"maximum":5},{"type":"null"}]}`, `3`, `$ is a number (3) that fits 2 of the forms the schema allows and must fit one`},
		{"condition", `{"properties":{"a":{"if":{"type":"string"},"then":{"minLength":2},"else":{"minimum":3}}}}`, `{"a":"x"}`,
			`$.a is a string ("x") of 1 characters that must have at least 2`},
		{"other condition", `{"properties":{"a":{"if":{"type":"string"},"then":{"minLength":2},"else":{"minimum":3}}}}`, `{"a":2}`,
			`$.a is a number (2) that must be at least 3`},
		{"names", `{"propertyNames":{"pattern":"^a"}}`, `{"a":1,"b":2}`, `$.b is a string ("b") that does not match "^a", as a name`},
		{"all of", `{"allOf":[{"required":["a"]},{"required":["b"]}]}`, `{"a":1}`, `$ is an object without the required member "b"`},
		{"count of members", `{"minProperties":1,"maxProperties":1}`, `{"a":1,"b":2}`, `$ is an object with 2 members that must have at most 1`},
		{"not explained", `{"not":{"type":"string"}}`, `"a"`, `$ is a string ("a") that does not fit the schema (`},
		{"false", `false`, `{}`, `$ is an object that does not fit the schema (`},
		{"no JSON", `{}`, `{"a":`, `read arguments: `},
		{"number out of range", `{}`, `{"a":1e999}`, `read arguments: `},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, err := Compile(json.RawMessage(c.schema))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := s.Validate(json.RawMessage(c.args)); err != nil {
				got = err.Error()
			}
			open := strings.HasSuffix(c.want, "(") || strings.HasSuffix(c.want, ": ")
			if got != c.want && !(open && strings.HasPrefix(got, c.want)) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	cases := map[string]string{
		`{"type":"objekt"}`:                                     `check schema: $.type is a string ("objekt") that is none of "array","boolean","integer","null","number","object","string"`,
		`{"properties":{"a":{"minLength":-1}}}`:                 `check schema: $.properties.a.minLength is a number (-1) that must be at least 0`,
		`{"properties":[]}`:                                     `check schema: $.properties is an array that must be an object`,
		`{"properties":{"a":null}}`:                             `check schema: $.properties.a is null that must be an object or boolean`,
		`{"required":"a"}`:                                      `check schema: $.required is a string ("a") that must be an array`,
		`{"$schema":"http://json-schema.org/draft-04/schema#"}`: `check schema: $.$schema is a string ("http://json-schema.org/draft-04/schema#"); only draft-07 and draft 2020-12 are supported`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","items":[{}]}`: `check schema: $.items is an array that must be an object or boolean`,
		`[]`:           `check schema: $ is an array that must be an object or boolean`,
		`{"type":}`:    `read schema: `,
		`{"$ref":"#"}`: `resolve schema: $.$ref is part of a circle of references that no value ends`,
		`{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#"}]}}}`:              `resolve schema: $.allOf[0].$ref.anyOf[0].$ref is part of a circle of references that no value ends`,
		`{"properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{"a":{"not":{"$ref":"#/$defs/a"}}}}`: `resolve schema: $.$defs.a.not.$ref is part of a circle of references that no value ends`,
		`{"$ref":"https://example.org/s.json"}`:                                                `resolve schema: $.$ref is "https://example.org/s.json", which leaves the schema`,
		`{"$ref":"#/$defs/a"}`:                                                                 `resolve schema: $.$ref is "#/$defs/a", which names nothing in the schema`,
		`{"properties":{"a":{"$id":"https://example.org/x","$ref":"#"}}}`:                      `resolve schema: $.properties.a has $id, which is not supported in the schema of a tool`,
		`{"properties":{"a":{"$dynamicRef":"#x"}}}`:                                            `resolve schema: $.properties.a has $dynamicRef, which is not supported in the schema of a tool`,
		// A circle in the first of two members of one name counts: decoders merge them.
		`{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"$ref":"#/$defs/a"}},"$defs":{}}`: `resolve schema: $.allOf[0].$ref.$ref is part of a circle of references that no value ends`,
	}
	for schema, want := range cases {
		_, err := Compile(json.RawMessage(schema))
		if err == nil || err.Error() != want && !(strings.HasSuffix(want, ": ") && strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s\ngot  %v\nwant %s", schema, err, want)
		}
	}
}

func TestPatternsGoCannotRun(t *testing.T) {
	s, err := Compile(json.RawMessage(`{
		"properties":{"a":{"type":"string","pattern":"(?=x)x"},"b":{"pattern":"^b$"}},
		"patternProperties":{"(?!y)":{"type":"null"}},"additionalProperties":false}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range s.Unchecked() {
		got = append(got, p.Error())
	}
	want := []string{
		`pattern "(?!y)" cannot be checked: error parsing regexp: invalid or unsupported Perl syntax: ` + "`(?!`",
		`pattern "(?=x)x" cannot be checked: error parsing regexp: invalid or unsupported Perl syntax: ` + "`(?=`",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := s.Validate(json.RawMessage(`{"a":"anything","other":1}`)); err != nil {
		t.Errorf("an unchecked pattern refuses: %v", err)
	}
	var where *ArgumentError
	if err := s.Validate(json.RawMessage(`{"b":"x"}`)); !errors.As(err, &where) || where.Path != "$.b" {
		t.Errorf("the other pattern: %v", err)
	}
}

func TestBuiltinSchemas(t *testing.T) {
	for _, tool := range Builtins(Options{}) {
		if _, err := Compile(tool.Spec().Parameters); err != nil {
			t.Errorf("%s: %v", tool.Spec().Name, err)
		}
	}
}

// TestPrepare checks that arguments stay the bytes that they are.
func TestPrepare(t *testing.T) {
	bash := toolNamed("bash", Options{})
	args := json.RawMessage("{ \"timeout\":1.50e1,\"command\":\"\\u0061\", \"command\":\"\\ud83d\\ude00\" }")
	got, err := bash.Prepare(args)
	if err != nil || string(got) != string(args) {
		t.Errorf("got %s, %v", got, err)
	}
	refused := map[string]string{
		`{"command":"\ud83d"}`:           `$.command is a string that holds half of a surrogate pair or bytes that are not UTF-8`,
		"{\"command\":\"\xff\"}":         `$.command is a string that holds half of a surrogate pair or bytes that are not UTF-8`,
		`{"command":""}`:                 `$.command is a string ("") of 0 characters that must have at least 1`,
		`{"command":"x","timeout":0}`:    `$.timeout is a number (0) that must be greater than 0`,
		`{"command":"x","timeout":"5s"}`: `$.timeout is a string ("5s") that must be a number`,
	}
	for args, want := range refused {
		if _, err := bash.Prepare(json.RawMessage(args)); err == nil || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", args, err, want)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	edit := toolNamed("edit", Options{})
	args := json.RawMessage(`{"path":"a.go","edits":[{"oldText":"one","newText":"two"},{"oldText":"three","newText":"four"}]}`)
	for b.Loop() {
		if _, err := edit.Prepare(args); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := Compile(json.RawMessage(editSchema)); err != nil {
			b.Fatal(err)
		}
	}
}
