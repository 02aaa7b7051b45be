package transport

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/internal/secret"
)

// Trace is a file that requests and responses are appended to, one JSON object a
// line: a request before it is sent, a response when its body has ended, was cut
// off or was closed. Bodies are there as they went, headers only where they are
// known to hold no secret, and a key nowhere: what a request carries in a header
// that may hold one is taken out of addresses and bodies, too. A trace that
// cannot be written never fails a request.
type Trace struct {
	path string
	mu   sync.Mutex
	file *os.File
	err  error
	seq  atomic.Int64
}

// OpenTrace opens a trace file for appending and creates it where it is missing;
// only its owner may read it. A terminal is taken, too. Clients may share a trace,
// and processes a file.
func OpenTrace(path string) (*Trace, error) {
	// Looked at before it is opened: opening a pipe waits for its other end.
	info, err := os.Stat(path)
	isFile := err != nil || info.Mode().IsRegular()
	if !isFile && info.Mode()&os.ModeCharDevice == 0 {
		return nil, fmt.Errorf("open trace %s: it is not a regular file", path)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	if isFile {
		// It may have been there before, open to others.
		err = f.Chmod(0o600)
	}
	if err != nil {
		_ = f.Close() // what matters has failed already
		return nil, fmt.Errorf("open trace: %w", err)
	}
	return &Trace{path: path, file: f}, nil
}

// Close closes the file and returns the first error of writing it.
func (t *Trace) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.file.Close(); t.err == nil && err != nil {
		t.err = fmt.Errorf("write trace %s: %w", t.path, err)
	}
	return t.err
}

// append writes one line at once, so that lines of several processes do not mix.
func (t *Trace) append(line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := t.file.Write(append(line, '\n')); err != nil && t.err == nil {
		t.err = fmt.Errorf("write trace %s: %w", t.path, err)
	}
}

// traced records what passes through it.
type traced struct {
	next  http.RoundTripper
	trace *Trace
}

func (t *traced) RoundTrip(req *http.Request) (*http.Response, error) {
	x := &exchange{trace: t.trace, id: t.trace.seq.Add(1), secrets: secretsOf(req), began: time.Now()}
	req, body, err := withBody(req)
	if err != nil {
		return nil, err
	}
	x.request(req, body)
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		x.failed(err)
		return nil, err
	}
	resp.Body = &tee{ReadCloser: resp.Body, done: func(body []byte, err error) { x.response(resp, body, err) }}
	return resp, nil
}

// withBody returns the request with its body read: a copy, as a RoundTripper must
// not change what it is given.
func withBody(req *http.Request) (*http.Request, []byte, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, nil, nil
	}
	body, err := io.ReadAll(req.Body)
	if closed := req.Body.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read request: %w", err)
	}
	out := req.Clone(req.Context())
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return out, body, nil
}

// tee keeps what is read of a body and hands it over once, at the body's end.
type tee struct {
	io.ReadCloser
	kept bytes.Buffer
	once sync.Once
	done func([]byte, error)
}

func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.kept.Write(p[:n])
	if err != nil {
		t.end(err)
	}
	return n, err
}

func (t *tee) Close() error {
	t.end(nil)
	return t.ReadCloser.Close()
}

func (t *tee) end(err error) {
	t.once.Do(func() {
		if err == io.EOF {
			err = nil
		}
		t.done(t.kept.Bytes(), err)
	})
}

// exchange is a request and what came of it. The pid and id of its lines pair
// them.
type exchange struct {
	trace   *Trace
	id      int64
	secrets *secret.Set
	began   time.Time
}

func (x *exchange) line(typ string) []byte {
	b := append(rawjson.AppendQuote([]byte(`{"type":`), typ), `,"pid":`...)
	b = rawjson.AppendInt(b, int64(os.Getpid()))
	b = rawjson.AppendInt(append(b, `,"id":`...), x.id)
	return rawjson.AppendInt(append(b, `,"time":`...), time.Now().UnixMilli())
}

func (x *exchange) request(req *http.Request, body []byte) {
	b := rawjson.AppendQuote(append(x.line("request"), `,"method":`...), req.Method)
	b = rawjson.AppendQuote(append(b, `,"url":`...), x.secrets.Out(req.URL.Redacted()))
	b = x.header(b, req.Header)
	x.trace.append(append(x.body(b, body), '}'))
}

func (x *exchange) response(resp *http.Response, body []byte, err error) {
	b := rawjson.AppendInt(append(x.line("response"), `,"status":`...), int64(resp.StatusCode))
	b = x.took(b)
	b = x.header(b, resp.Header)
	b = x.body(b, body)
	if err != nil {
		b = rawjson.AppendQuote(append(b, `,"error":`...), x.secrets.Out(err.Error()))
	}
	x.trace.append(append(b, '}'))
}

func (x *exchange) failed(err error) {
	b := x.took(x.line("response"))
	b = rawjson.AppendQuote(append(b, `,"error":`...), x.secrets.Out(err.Error()))
	x.trace.append(append(b, '}'))
}

func (x *exchange) took(b []byte) []byte {
	return rawjson.AppendInt(append(b, `,"tookMs":`...), time.Since(x.began).Milliseconds())
}

func (x *exchange) body(b, body []byte) []byte {
	return rawjson.AppendQuote(append(b, `,"body":`...), x.secrets.Out(string(body)))
}
