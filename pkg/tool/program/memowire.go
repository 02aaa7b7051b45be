package program

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/drover-run/drover/internal/rawjson"
)

const (
	// MaxMemo bounds the value of a memo, in bytes.
	MaxMemo = 1 << 20
	// maxMemoLine bounds what goes over the socket, in bytes.
	maxMemoLine = MaxMemo + 64<<10
)

// request asks for a memo or, with a value, sets it. Requests and answers are one
// line of JSON, put together by hand: values keep every byte.
type request struct {
	token, name string
	value       json.RawMessage
}

func (r request) append(dst []byte) []byte {
	dst = rawjson.AppendQuote(append(dst, `{"token":`...), r.token)
	dst = rawjson.AppendQuote(append(dst, `,"name":`...), r.name)
	if r.value != nil {
		dst = append(append(dst, `,"value":`...), r.value...)
	}
	return append(dst, "}\n"...)
}

func parseRequest(line []byte) (r request, err error) {
	if bad := rawjson.Valid(line); bad != nil {
		return r, fmt.Errorf("read request: %w", bad)
	}
	r.token, _ = rawjson.GetString(line, "token")
	r.name, _ = rawjson.GetString(line, "name")
	r.value, _ = rawjson.Get(line, "value")
	return r, nil
}

// answer is what comes back: neither a value nor an error when a memo is set, or
// not there.
type answer struct {
	value json.RawMessage
	err   string
}

func (a answer) append(dst []byte) []byte {
	switch {
	case a.err != "":
		dst = rawjson.AppendQuote(append(dst, `{"error":`...), a.err)
	case a.value != nil:
		dst = append(append(dst, `{"value":`...), a.value...)
	default:
		dst = append(dst, '{')
	}
	return append(dst, "}\n"...)
}

func parseAnswer(line []byte) (a answer, err error) {
	if bad := rawjson.Valid(line); bad != nil {
		return a, fmt.Errorf("read answer: %w", bad)
	}
	a.err, _ = rawjson.GetString(line, "error")
	a.value, _ = rawjson.Get(line, "value")
	return a, nil
}

// readLine reads a line of at most most bytes.
func readLine(from io.Reader, most int64) ([]byte, error) {
	line, err := bufio.NewReader(io.LimitReader(from, most)).ReadBytes('\n')
	if errors.Is(err, io.EOF) && int64(len(line)) == most {
		err = fmt.Errorf("read line: it has more than %d bytes", most)
	}
	return line, err
}
