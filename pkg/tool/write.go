package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

const writeDescription = `
Write a file: its whole content, replacing what was there. Missing folders are created.`

const writeSchema = `{
	"type": "object",
	"properties": {
		"path": {"type": "string", "minLength": 1, "description": "The file, relative to the working directory or absolute."},
		"content": {"type": "string", "description": "The whole content."}
	},
	"required": ["path", "content"],
	"additionalProperties": false
}`

type write struct {
	base
	files *files
}

func newWrite(f *files) *write {
	return &write{base: newBase("write", writeDescription, writeSchema, false), files: f}
}

// Execute implements effect.Tool.
func (w *write) Execute(ctx context.Context, call effect.Invocation) (message.ToolResult, error) {
	name, err := textArg(call.Args, "path")
	if err != nil {
		return message.ToolResult{}, err
	}
	content, err := textArg(call.Args, "content")
	if err != nil {
		return message.ToolResult{}, err
	}
	path, err := w.files.path(name)
	if err != nil {
		return message.ToolResult{}, err
	}
	unlock, err := w.files.lock(ctx, path)
	if err != nil {
		return message.ToolResult{}, err
	}
	defer unlock()
	if err := ctx.Err(); err != nil {
		return message.ToolResult{}, fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return message.ToolResult{}, fmt.Errorf("create folder for %s: %w", name, err)
	}
	created, err := replaceFile(path, content)
	if err != nil {
		return message.ToolResult{}, fmt.Errorf("write %s: %w", name, err)
	}
	verb := "Replaced"
	if created {
		verb = "Created"
	}
	return textResult(fmt.Sprintf("%s %s: %d bytes, %d lines.", verb, name, len(content), countLines(content))), nil
}

// replaceFile puts content at path in one step. A file that was there keeps its
// mode, a new one gets what the umask leaves of rw for all.
func replaceFile(path, content string) (created bool, err error) {
	fsys := fsx.FS(fsx.OS{})
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		created, fsys = true, newFiles{}
	case err != nil:
		return false, err
	default:
		if err := checkWritable(path, info); err != nil {
			return false, err
		}
	}
	return created, fsx.Replace(fsys, path, fsx.ReplaceOptions{Existing: true}, func(w io.Writer) error {
		_, err := io.WriteString(w, content)
		return err
	})
}

// checkWritable keeps the promise of a file's mode: replacing it needs rights on
// its folder only.
func checkWritable(path string, info fs.FileInfo) error {
	if err := checkRegular(path, info); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// newFiles creates files as everybody does; fsx itself makes private ones.
type newFiles struct{ fsx.OS }

// OpenFile implements fsx.FS.
func (n newFiles) OpenFile(name string, flag int, _ fs.FileMode) (fsx.File, error) {
	return n.OS.OpenFile(name, flag, 0o666)
}
