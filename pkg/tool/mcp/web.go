package mcp

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"

	"github.com/drover-run/drover/internal/secret"
)

// web sends the requests to an address. It adds headers, and keeps what went wrong
// last: of a refusal the SDK tells its status alone.
type web struct {
	next    http.RoundTripper
	headers map[string]string
	keys    *secret.Set // what the headers keep secret

	mu     sync.Mutex
	last   string // what is wrong, "" when the last answer was one
	status int    // of the last answer, 0 when there was none
}

// RoundTrip implements http.RoundTripper.
func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range w.headers {
		r.Header.Set(name, value)
	}
	next := w.next
	if next == nil {
		next = http.DefaultTransport
	}
	res, err := next.RoundTrip(r)
	switch {
	case err != nil:
		w.keep("cannot be reached: "+unreachable(err), 0)
	case r.Method == http.MethodPost:
		w.keep(w.wrong(res), res.StatusCode)
	}
	return res, err
}

func (w *web) keep(what string, status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last, w.status = what, status
}

// said is what is wrong with the address, "" when nothing is known, and the status
// that it answered with.
func (w *web) said() (what string, status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last, w.status
}

// unreachable says why no connection came about.
func unreachable(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return "there is no host " + dns.Name
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	return err.Error()
}

// maxSaid is how much of a refusal's text is told, in bytes; cutMark follows what was
// cut off there.
const (
	maxSaid = 200
	cutMark = "…"
)

// wrong says what a response is when it is no answer of a server, without what the
// headers keep secret. What it reads of it is there to be read again.
func (w *web) wrong(res *http.Response) string {
	if res.StatusCode < 300 {
		kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
		if strings.HasPrefix(kind, "text/html") {
			return "answers with a page for people (" + kind + "): its url is not that of an MCP server"
		}
		return ""
	}
	begin, _ := io.ReadAll(io.LimitReader(res.Body, maxSaid))
	res.Body = readAgain{io.MultiReader(strings.NewReader(string(begin)), res.Body), res.Body}
	said := fmt.Sprintf("answers %d %s", res.StatusCode, http.StatusText(res.StatusCode))
	if text := strings.Join(strings.Fields(strings.ToValidUTF8(string(begin), "�")), " "); text != "" {
		if len(begin) == maxSaid {
			text += cutMark
		}
		said += ": " + w.keys.OutCut(text, cutMark)
	}
	switch res.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		said += "; its headers must hold what lets drover in"
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		said += "; its url may be that of something else"
	}
	return said
}

// readAgain is a body of which a part has been read.
type readAgain struct {
	io.Reader
	io.Closer
}
