package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

const editDescription = `
Change parts of a text file. Every oldText must occur exactly once in the file as it is now, and edits must not overlap; give enough of the surrounding lines.
All edits are made or none. Line endings are kept: write them as \n.`

const editSchema = `{
	"type": "object",
	"properties": {
		"path": {"type": "string", "minLength": 1, "description": "The file, relative to the working directory or absolute."},
		"edits": {
			"type": "array",
			"minItems": 1,
			"items": {
				"type": "object",
				"properties": {
					"oldText": {"type": "string", "minLength": 1, "description": "The exact text to replace."},
					"newText": {"type": "string", "description": "What to put in its place."}
				},
				"required": ["oldText", "newText"],
				"additionalProperties": false
			}
		}
	},
	"required": ["path", "edits"],
	"additionalProperties": false
}`

const (
	maxEdited = 64 << 20  // bytes up to which a file is edited
	maxDiff   = 256 << 10 // bytes of a diff that a result keeps
)

type edit struct {
	base
	files *files
}

func newEdit(f *files) *edit {
	return &edit{base: newBase("edit", editDescription, editSchema, false), files: f}
}

// Execute implements effect.Tool.
func (e *edit) Execute(ctx context.Context, call effect.Invocation) (message.ToolResult, error) {
	name, err := textArg(call.Args, "path")
	if err != nil {
		return message.ToolResult{}, err
	}
	changes, err := parseChanges(call.Args)
	if err != nil {
		return message.ToolResult{}, err
	}
	path, err := e.files.path(name)
	if err != nil {
		return message.ToolResult{}, err
	}
	unlock, err := e.files.lock(ctx, path)
	if err != nil {
		return message.ToolResult{}, err
	}
	defer unlock()
	old, err := readWhole(path)
	if err != nil {
		return message.ToolResult{}, fmt.Errorf("edit file: %w", err)
	}
	done, err := applyChanges(old, changes)
	if err != nil {
		return message.ToolResult{}, fmt.Errorf("edit %s: %w", name, err)
	}
	if err := ctx.Err(); err != nil {
		return message.ToolResult{}, fmt.Errorf("edit %s: %w", name, err)
	}
	if _, err := replaceFile(path, done.content); err != nil {
		return message.ToolResult{}, fmt.Errorf("edit %s: %w", name, err)
	}
	r := textResult(fmt.Sprintf("Edited %s: %d %s.", name, len(changes), plural(len(changes), "replacement")))
	r.Details = diffDetails(unifiedDiff(name, done.before, done.after)).raw()
	return r, nil
}

// diffDetails holds a diff, or the start of one that would weigh too much: a file
// may be one line.
func diffDetails(diff string) object {
	d := object{}.text("diff", clip(diff, maxDiff))
	if len(diff) > maxDiff {
		d = d.boolean("diffTruncated", true)
	}
	return d
}

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// change is one replacement, with line feeds for line ends.
type change struct{ old, new string }

func parseChanges(args json.RawMessage) ([]change, error) {
	list, _ := rawjson.Get(args, "edits")
	var changes []change
	for el, err := range rawjson.Elements(list) {
		if err != nil {
			return nil, fmt.Errorf("read edits: %w", err)
		}
		var c change
		if c.old, err = textArg(el, "oldText"); err != nil {
			return nil, fmt.Errorf("read edit %d: %w", len(changes)+1, err)
		}
		if c.new, err = textArg(el, "newText"); err != nil {
			return nil, fmt.Errorf("read edit %d: %w", len(changes)+1, err)
		}
		c.old, c.new = lineFeeds(c.old), lineFeeds(c.new)
		changes = append(changes, c)
	}
	if len(changes) == 0 {
		return nil, errors.New("read edits: there are none")
	}
	return changes, nil
}

func lineFeeds(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

func readWhole(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if err := checkRegular(path, info); err != nil {
		return "", err
	}
	if info.Size() > maxEdited {
		return "", fmt.Errorf("%s has %d bytes, %d are the most", path, info.Size(), maxEdited)
	}
	b, err := os.ReadFile(path)
	return string(b), err
}
