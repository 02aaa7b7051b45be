package program

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := put("plain", "", 0o600)
	own := put("own", "#!/bin/sh\n", 0o700)
	schema := put("schema.json", "{\"type\": \"object\",\n \"properties\": {\"n\": {\"type\": \"integer\"}}}", 0o600)
	broken := put("broken.json", "{\"type\": }", 0o600)
	raw := func(text string) Config { return Config{Argv: []string{"sh"}, Schema: json.RawMessage(text)} }
	cases := []struct {
		name   string
		config Config
		want   string // "" is fine
	}{
		{"in the PATH", Config{Argv: []string{"sh"}}, ""},
		{"by its path", Config{Argv: []string{own}}, ""},
		{"in a PATH of its own", Config{Argv: []string{"own"}, Env: []string{"PATH=" + dir}}, ""},
		{"not in that", Config{Argv: []string{"sh"}, Env: []string{"PATH=" + dir}}, "argv: sh is not in the PATH: install it, or give its path"},
		{"nowhere", Config{Argv: []string{"no-such-program"}}, "argv: no-such-program is not in the PATH: install it, or give its path"},
		{"gone", Config{Argv: []string{dir + "/gone"}}, "argv: " + dir + "/gone is not there: install it, or correct the path"},
		{"no program", Config{Argv: []string{plain}}, "argv: " + plain + " may not be executed: chmod +x lets it"},
		{"folder", Config{Argv: []string{"sh"}, Dir: dir}, ""},
		{"no folder", Config{Argv: []string{"sh"}, Dir: dir + "/gone"}, "cwd: " + dir + "/gone is not there"},
		{"schema", raw(`{"type":"object","properties":{"a":{"type":"string","pattern":"^a+$"}}}`), ""},
		{"no schema", raw(`{"type":"objekt"}`), `schema: check schema: $.type is a string ("objekt") that is none of "array","boolean","integer","null","number","object","string"`},
		{"pattern", raw(`{"type":"object","properties":{"a":{"pattern":"(?=a)"}}}`), "schema: pattern \"(?=a)\" cannot be checked: error parsing regexp: invalid or unsupported Perl syntax: `(?=`"},
		{"no object", raw(`{"type":"string"}`), `schema: arguments are an object, so the schema must have "type": "object"`},
		{"schema file", Config{Argv: []string{"sh"}, SchemaFile: schema}, ""},
		{"broken schema file", Config{Argv: []string{"sh"}, SchemaFile: broken}, "schema_file: " + broken + " is not JSON: expected a value at byte 9"},
		{"no schema file", Config{Argv: []string{"sh"}, SchemaFile: dir + "/gone"}, "schema_file: open " + dir + "/gone: no such file or directory"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if err := New(c.config, Options{}).Check(); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestSpec(t *testing.T) {
	path := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(path, []byte("{\"type\": \"object\",\n \"required\": []}"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := New(Config{Name: "a", Description: "b", SchemaFile: path, ReplaySafe: true}, Options{})
	if s := p.Spec(); s.Name != "a" || s.Description != "b" || string(s.Parameters) != `{"type":"object","required":[]}` || !p.ReplaySafe() {
		t.Errorf("%+v %s", s, s.Parameters)
	}
	if s := New(Config{SchemaFile: path + "x"}, Options{}).Spec(); string(s.Parameters) != noArguments {
		t.Errorf("%s", s.Parameters)
	}
}
