package program

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/tool"
)

// maxResult bounds a result that a program prints as JSON, in bytes.
const maxResult = 4 << 20

// printed takes what a program prints, and makes a result of it.
type printed interface {
	Write(p []byte) (int, error)
	// result ends it.
	result(e tool.Ending) message.ToolResult
}

func (t *Tool) newPrinted() printed {
	text := printedText{&tool.Output{Tool: t.config.Name, TempDir: t.options.TempDir}}
	if t.config.JSON {
		return &printedJSON{text: text}
	}
	return text
}

// printedText is the text of a result.
type printedText struct{ *tool.Output }

func (p printedText) result(e tool.Ending) message.ToolResult {
	p.Finish()
	return e.Result(p.Output)
}

// printedJSON is a whole result. Of a program that failed it is text.
type printedJSON struct {
	text  printedText
	start []byte // at most maxResult and a byte
}

// Write keeps what may be a result. What is longer is none.
func (p *printedJSON) Write(b []byte) (int, error) {
	p.start = append(p.start, b[:min(len(b), maxResult+1-len(p.start))]...)
	return len(b), nil
}

func (p *printedJSON) result(e tool.Ending) message.ToolResult {
	if e.Failed() {
		_, _ = p.text.Write(p.start)
		return p.text.result(e)
	}
	var r message.ToolResult
	var err error
	switch {
	case len(p.start) > maxResult:
		err = fmt.Errorf("it is longer than %d MiB", maxResult>>20)
	case len(bytes.TrimSpace(p.start)) == 0:
		err = errors.New("it printed nothing")
	default:
		r, err = parseResult(p.start)
	}
	if err == nil {
		return r
	}
	e.Err = fmt.Errorf("read the program's result: %w%s", err, beginning(p.start))
	return p.text.result(e)
}

// beginning quotes the start of what is no result.
func beginning(text []byte) string {
	const most = 200
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return ""
	}
	start := strings.ToValidUTF8(string(text[:min(len(text), most)]), "\uFFFD")
	return "; it begins with " + string(rawjson.Quote(start))
}
