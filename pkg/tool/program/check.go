package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/tool"
)

// noArguments is the schema of a tool without one.
const noArguments = `{"type":"object","properties":{},"additionalProperties":false}`

// Problem is why a program cannot be a tool, and which field of its description
// says so.
type Problem struct {
	Field string
	Err   error
}

func (p *Problem) Error() string { return p.Field + ": " + p.Err.Error() }

// Unwrap returns the reason.
func (p *Problem) Unwrap() error { return p.Err }

// Check looks for what a call needs: the program, its folder and a schema whose
// patterns can all be run (D46). The error is a *Problem.
func (t *Tool) Check() error {
	if _, err := t.schema(); err != nil {
		return err
	}
	if err := tool.CheckProgram(t.config.Argv[0], t.config.Env); err != nil {
		return &Problem{"argv", err}
	}
	if t.config.Dir == "" {
		return nil // a session's is looked at when it is used
	}
	if err := checkDir(t.config.Dir); err != nil {
		return &Problem{"cwd", err}
	}
	return nil
}

// checkDir says why nothing can start in a folder.
func checkDir(dir string) error {
	// The dot asks for what a process needs that shall start there.
	_, err := os.Stat(dir + "/.")
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is not there", dir)
	}
	return err
}

// loaded is a schema as it was given and as it checks.
type loaded struct {
	raw      json.RawMessage
	compiled *tool.Schema
}

// loadSchema reads the schema and prepares it; the error is a *Problem.
func (t *Tool) loadSchema() (loaded, error) {
	raw, field, err := t.config.Schema, "schema", error(nil)
	switch {
	case t.config.SchemaFile != "":
		field = "schema_file"
		if raw, err = readSchema(t.config.SchemaFile); err != nil {
			return loaded{}, &Problem{field, err}
		}
	case raw == nil:
		raw = json.RawMessage(noArguments)
	}
	s, err := compile(raw)
	if err != nil {
		return loaded{}, &Problem{field, err}
	}
	return loaded{raw, s}, nil
}

func readSchema(path string) (json.RawMessage, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if bad := rawjson.Valid(text); bad != nil {
		return nil, fmt.Errorf("%s is not JSON: %s at byte %d", path, bad.Msg, bad.Offset)
	}
	return rawjson.Compact(nil, text)
}

func compile(raw json.RawMessage) (*tool.Schema, error) {
	s, err := tool.Compile(raw)
	if err != nil {
		return nil, err
	}
	if unchecked := s.Unchecked(); len(unchecked) > 0 {
		return nil, unchecked[0]
	}
	if typ, _ := rawjson.GetString(raw, "type"); typ != "object" {
		return nil, errors.New(`arguments are an object, so the schema must have "type": "object"`)
	}
	return s, nil
}
