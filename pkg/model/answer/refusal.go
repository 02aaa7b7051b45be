package answer

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
)

// Refusal is a request that got no answer, or an answer that broke off: what is
// known of the reason. It is what run's errors become; a provider makes one
// itself where it knows more than the error.
type Refusal struct {
	Status       int    // HTTP status, 0 when none was the reason
	Class        string // one of message's Class constants
	RetryAfterMs int64
	Kind         string // the server's own name of the error
	Text         string // what the server, or the network, said
	worded       bool   // the text is the message of the server's own error object
	wrapped      bool   // which lies in an object of type error
	kept         bool   // whatever it is, it says nothing of a job
	unasked      bool   // the server was not reached
	unsent       bool   // and surely has nothing of the request
	reported     bool   // it is an answer's own end
}

func (r *Refusal) Error() string {
	s := r.Text
	if s == "" {
		s = "nothing more was said"
	}
	if r.Kind != "" && !strings.Contains(s, r.Kind) {
		s = r.Kind + ": " + s
	}
	if r.Status != 0 {
		s = strconv.Itoa(r.Status) + ": " + s
	}
	return s
}

// Refused reads a response of status 300 or more. body is what was read of it,
// JSON or not.
func Refused(status int, header http.Header, body []byte) *Refusal {
	r := &Refusal{Status: status, RetryAfterMs: RetryAfterMs(header)}
	r.read(body)
	r.classify()
	return r
}

// Reported reads an error that a server sent where an answer was to be: the
// event or object that holds it, or the error alone.
func Reported(raw []byte) *Refusal {
	r := &Refusal{reported: true}
	r.read(raw)
	r.classify()
	return r
}

// Garbled reports data that is not what the provider's interface knows.
func Garbled(what string, data []byte) *Refusal {
	return &Refusal{Class: message.ClassServer, Text: "the server sent " + what + ": " + excerpt(string(data), 200)}
}

// Kept is a refusal that says nothing of the job that was asked about, whatever it
// is: the server has told before that the job is there (D33).
func Kept(err error) error {
	r, ok := errors.AsType[*Refusal](err)
	if !ok {
		return err
	}
	kept := *r
	kept.kept = true
	return &kept
}

// Permanent makes a refusal that no other attempt would escape.
func Permanent(text string) *Refusal {
	return &Refusal{Class: message.ClassInvalidRequest, Text: text}
}

// read takes the server's words from a body. Providers wrap them differently:
// {"error":{"type","code","message"}}, {"error":"…"}, {"message"}, {"detail"}.
func (r *Refusal) read(body []byte) {
	fault, wrapped := body, false
	outer, _ := rawjson.GetString(body, "type")
	r.wrapped = outer == "error"
	for _, wrapper := range []string{"response", "error"} {
		if inner, ok := rawjson.Get(fault, wrapper); ok && rawjson.KindOf(inner) != rawjson.Null {
			fault, wrapped = inner, wrapper == "error"
		}
	}
	if rawjson.Valid(fault) != nil {
		r.Text = excerpt(string(body), 500)
		return
	}
	if rawjson.KindOf(fault) == rawjson.String {
		text, _ := rawjson.Unquote(fault)
		r.Text = excerpt(text, maxText)
		return
	}
	for _, field := range []string{"message", "detail", "error_description", "error"} {
		if text, _ := rawjson.GetString(fault, field); text != "" {
			r.Text, r.worded = excerpt(text, maxText), wrapped && field == "message"
			break
		}
	}
	if r.Text == "" {
		r.Text = excerpt(string(fault), 500)
	}
	r.kind(fault)
}

// kind takes the server's name of the error. The code is more exact than the
// type, but may be a status.
func (r *Refusal) kind(fault []byte) {
	for _, field := range []string{"code", "type", "status"} {
		v, _ := rawjson.Get(fault, field)
		n, isNumber := rawjson.ParseInt(v)
		name, err := rawjson.Unquote(v)
		if err == nil {
			if m, bad := strconv.ParseInt(name, 10, 32); bad == nil {
				n, isNumber = m, true
			}
		}
		switch {
		case isNumber && r.Status == 0 && n >= 300 && n < 600:
			r.Status = int(n)
		case !isNumber && r.Kind == "" && name != "" && name != "error":
			r.Kind = excerpt(name, 100)
		}
	}
}

// RetryAfterMs returns the delay that a response asks for, in ms; 0 when it asks
// for none. A date is read by the server's own clock, where it tells it.
func RetryAfterMs(header http.Header) int64 {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(header.Get("Retry-After-Ms")), 64); err == nil && ms > 0 {
		return delay(ms)
	}
	after := strings.TrimSpace(header.Get("Retry-After"))
	if s, err := strconv.ParseFloat(after, 64); err == nil {
		return delay(s * 1000)
	}
	at, err := http.ParseTime(after)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(0, at.Sub(now).Milliseconds())
}

// delay rounds a number of ms up and keeps it within a year.
func delay(ms float64) int64 {
	const year = 365 * 24 * 3600 * 1000
	if !(ms > 0) {
		return 0
	}
	if ms >= year {
		return year
	}
	n := int64(ms)
	if float64(n) < ms {
		n++
	}
	return n
}

// maxText bounds what is kept of a server's words, in bytes.
const maxText = 2000

// cutMark ends a text that was cut off.
const cutMark = "…"

// excerpt is the beginning of a text on one line.
func excerpt(s string, limit int) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= limit {
		return s
	}
	s = s[:limit]
	return s[:wholeLen(s)] + cutMark
}
