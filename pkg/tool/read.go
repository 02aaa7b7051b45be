package tool

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"unicode/utf8"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

const readDescription = `
Read a file. Of a text the first 2,000 lines or 50 KiB are returned, from line "offset" on; the result says how to go on.
PNG, JPEG, GIF and WebP images up to 5 MB are returned as images. Other binary files are refused.`

const readSchema = `{
	"type": "object",
	"properties": {
		"path": {"type": "string", "minLength": 1, "description": "The file, relative to the working directory or absolute."},
		"offset": {"type": "integer", "minimum": 1, "description": "The first line to return, counted from 1."},
		"limit": {"type": "integer", "minimum": 1, "description": "How many lines to return at most."}
	},
	"required": ["path"],
	"additionalProperties": false
}`

// maxImage is the size in bytes up to which an image is returned.
const maxImage = 5_000_000

type read struct {
	base
	files *files
}

func newRead(f *files) *read {
	return &read{base: newBase("read", readDescription, readSchema, true), files: f}
}

// Execute implements effect.Tool.
func (r *read) Execute(ctx context.Context, call effect.Invocation) (message.ToolResult, error) {
	name, err := textArg(call.Args, "path")
	if err != nil {
		return message.ToolResult{}, err
	}
	path, err := r.files.path(name)
	if err != nil {
		return message.ToolResult{}, err
	}
	f, info, err := openRegular(path)
	if err != nil {
		return message.ToolResult{}, fmt.Errorf("read file: %w", err)
	}
	defer f.Close()
	head, err := readHead(f)
	if err != nil {
		return message.ToolResult{}, fmt.Errorf("read %s: %w", name, err)
	}
	if mime := imageType(head); mime != "" {
		return readImage(f, name, mime, info.Size())
	}
	if what := binaryType(head); what != "" {
		return message.ToolResult{}, fmt.Errorf("read %s: it is not text but looks like %s (%d bytes)", name, what, info.Size())
	}
	p := page{
		name:  name,
		first: int64(numberArg(call.Args, "offset", 1, 1<<52)),
		limit: int(numberArg(call.Args, "limit", maxLines, maxLines)),
	}
	if err := p.read(ctx, f); err != nil {
		return message.ToolResult{}, fmt.Errorf("read %s: %w", name, err)
	}
	return p.result()
}

// openRegular opens a file that can be read to its end.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if err := checkRegular(path, info); err != nil {
		return nil, nil, err
	}
	f, err := os.Open(path)
	return f, info, err
}

// readHead returns the start of a file, by which it is judged, and goes back.
func readHead(f *os.File) ([]byte, error) {
	head := make([]byte, 8<<10)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	_, err = f.Seek(0, io.SeekStart)
	return head[:n], err
}

func readImage(f io.Reader, name, mime string, size int64) (message.ToolResult, error) {
	data, err := io.ReadAll(io.LimitReader(f, maxImage+1))
	if err != nil {
		return message.ToolResult{}, fmt.Errorf("read %s: %w", name, err)
	}
	if len(data) > maxImage {
		return message.ToolResult{}, fmt.Errorf("read %s: the image has %d bytes, %d are the most; make it smaller first", name, max(size, int64(len(data))), maxImage)
	}
	r := textResult(fmt.Sprintf("[%s, %s, %d bytes]", name, mime, len(data)))
	r.Content = append(r.Content, message.Block{
		Type: message.BlockImage, Data: base64.StdEncoding.EncodeToString(data), MimeType: mime,
	})
	return r, nil
}

// page is the part of a text that one result shows.
type page struct {
	name  string
	first int64 // its first line, counted from 1
	limit int   // lines

	text  []byte
	lines int   // whole lines in text
	seen  int64 // lines up to the end of the page, those before it too
	more  bool  // the file goes on
	long  bool  // the only line was cut
}

var errNUL = errors.New("it is not text: there is a NUL byte in what was asked for")

// read reads from the start of a text.
func (p *page) read(ctx context.Context, f io.Reader) error {
	in := bufio.NewReaderSize(f, 64<<10)
	if bom, _ := in.Peek(len(utf8BOM)); string(bom) == utf8BOM {
		_, _ = in.Discard(len(utf8BOM))
	}
	for p.seen+1 < p.first {
		if ok, err := skipLine(ctx, in); err != nil {
			return err
		} else if !ok {
			return p.pastEnd()
		}
		p.seen++
	}
	for p.lines < p.limit && ctx.Err() == nil {
		line, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if len(line) == 0 {
			return p.checkEnd()
		}
		if len(p.text)+len(line) > maxBytes {
			return p.cut(line)
		}
		p.text = append(p.text, line...)
		p.lines++
		p.seen++
	}
	_, err := in.Peek(1)
	p.more = err == nil
	return errors.Join(ctx.Err(), p.checkNUL())
}

// cut ends the page before a line that is too long for it, or within that line
// when it is the first one.
func (p *page) cut(line []byte) error {
	p.more = true
	if p.lines == 0 {
		p.long = true
		n := maxBytes
		for n > maxBytes-utf8.UTFMax && !utf8.RuneStart(line[n]) {
			n--
		}
		p.text = append(p.text, line[:n]...)
		p.seen++
	}
	return p.checkNUL()
}

func (p *page) checkNUL() error {
	if bytes.IndexByte(p.text, 0) >= 0 {
		return errNUL
	}
	return nil
}

func (p *page) checkEnd() error {
	if p.lines == 0 && p.seen > 0 {
		return p.pastEnd()
	}
	return p.checkNUL()
}

func (p *page) pastEnd() error {
	return fmt.Errorf("offset %d is past its end: it has %d lines", p.first, p.seen)
}

// skipLine reads to the next line; ok is false when there is none to skip.
func skipLine(ctx context.Context, in *bufio.Reader) (ok bool, err error) {
	for {
		line, err := in.ReadSlice('\n')
		ok = ok || len(line) > 0
		switch {
		case err == nil, errors.Is(err, io.EOF):
			return ok, ctx.Err()
		case !errors.Is(err, bufio.ErrBufferFull):
			return false, err
		case ctx.Err() != nil:
			return false, ctx.Err()
		}
	}
}

func (p *page) result() (message.ToolResult, error) {
	text := validText(string(p.text))
	d := object{}.boolean("truncated", p.more)
	switch {
	case p.long:
		text += fmt.Sprintf("\n[Line %d is longer than %d bytes and cut here; bash can show its rest. If lines follow, go on with offset %d.]", p.seen, maxBytes, p.seen+1)
	case p.more:
		text += fmt.Sprintf("[Lines %d to %d of %s; it goes on with offset %d.]", p.first, p.seen, p.name, p.seen+1)
	case text == "":
		text = "(empty file)"
	}
	if p.more {
		d = d.integer("nextOffset", p.seen+1)
	}
	r := textResult(text)
	r.Details = d.raw()
	return r, nil
}
