package answer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/drover-run/drover/pkg/message"
)

// kindClasses are the servers' own names of errors, for those that come without
// a status.
var kindClasses = map[string]string{
	"overloaded_error":          message.ClassOverloaded,
	"server_is_overloaded":      message.ClassOverloaded,
	"slow_down":                 message.ClassRateLimit,
	"rate_limit_error":          message.ClassRateLimit,
	"rate_limit_exceeded":       message.ClassRateLimit,
	"api_error":                 message.ClassServer,
	"server_error":              message.ClassServer,
	"internal_server_error":     message.ClassServer,
	"timeout_error":             message.ClassTimeout,
	"vector_store_timeout":      message.ClassTimeout,
	"context_length_exceeded":   message.ClassOverflow,
	"request_too_large":         message.ClassOverflow,
	"exceed_context_size_error": message.ClassOverflow,
	"insufficient_quota":        message.ClassQuota,
	"billing_error":             message.ClassBilling,
	"authentication_error":      message.ClassAuth,
	"invalid_api_key":           message.ClassAuth,
	"permission_error":          message.ClassPermission,
	"not_found_error":           message.ClassInvalidRequest,
	"invalid_request_error":     message.ClassInvalidRequest,
	"invalid_prompt":            message.ClassInvalidRequest,
	"invalid_image":             message.ClassInvalidRequest,
	"unsupported_parameter":     message.ClassInvalidRequest,
	"model_not_found":           message.ClassInvalidRequest,
	"bio_policy":                message.ClassInvalidRequest,
	"content_policy_violation":  message.ClassInvalidRequest,
}

// classify decides by the status, then by the server's name of the error, then
// by its words.
func (r *Refusal) classify() {
	named := kindClasses[r.Kind]
	overflow := message.IsOverflowMessage(r.Text) || named == message.ClassOverflow || r.Status == 400 && r.Text == ""
	switch s := r.Status; {
	case s == 413:
		r.Class = message.ClassOverflow
	case s == 401:
		r.Class = message.ClassAuth
	case s == 402:
		r.Class = message.ClassBilling
	case s == 403:
		r.Class = message.ClassPermission
	case s == 408:
		r.Class = message.ClassTimeout
	case s == 425:
		r.Class = message.ClassRetryable
	case s == 429:
		r.Class = message.ClassRateLimit
		// Spent quotas come with this status too, and do not pass.
		if named == message.ClassQuota || !message.IsRetryableMessage("429 "+r.Kind+" "+r.Text) {
			r.Class = message.ClassQuota
		}
	case s == 0 && named != "" && named != message.ClassInvalidRequest:
		r.Class = named
	case overflow && s != 404:
		r.Class = message.ClassOverflow
	case s == 529, s == 503 && strings.Contains(strings.ToLower(r.Kind+r.Text), "overloaded"):
		r.Class = message.ClassOverloaded
	case s == 504, s == 524:
		r.Class = message.ClassTimeout
	case s >= 500:
		r.Class = message.ClassServer
	case (s == 0 || s == 409) && named == "" && message.IsRetryableMessage(r.Text):
		r.Class = message.ClassRetryable
	default:
		r.Class = message.ClassInvalidRequest
	}
}

// refusal makes a refusal of any error that is not the request's own end.
func refusal(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	class := message.ClassNetwork
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return &Refusal{Class: class, Text: "the stream ended early", unasked: true}
	case isTimeout(err):
		class = message.ClassTimeout
	case !isPassing(err):
		class = message.ClassInvalidRequest
	}
	return &Refusal{Class: class, Text: excerpt(cause(err).Error(), maxText), unasked: true, unsent: isUnsent(err)}
}

// cause is the error without what says where the request went: an address may
// hold a key.
func cause(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return cause(u.Err)
	}
	return err
}

func isTimeout(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}

// isUnsent tells whether there was no connection that could have carried anything.
func isUnsent(err error) bool {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return true
	}
	o, ok := errors.AsType[*net.OpError](err)
	return ok && o.Op == "dial"
}

// permanent is an error that knows that it will not pass.
type permanent interface {
	error
	Permanent() bool
}

// isPassing tells whether the network, rather than what is at its other end, may
// be the cause.
func isPassing(err error) bool {
	if p, ok := errors.AsType[permanent](err); ok {
		return !p.Permanent()
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return false
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return false
	}
	text := err.Error()
	return !strings.Contains(text, "unsupported protocol scheme") && !strings.Contains(text, "malformed HTTP") &&
		!strings.Contains(text, "server gave HTTP response to HTTPS client")
}

// leavesJob tells whether a question about a deferred job, refused like this, has
// said nothing of the job (D33): only one that is not known is gone.
func (r *Refusal) leavesJob(job string) bool {
	switch {
	case r.kept:
		return true
	case r.reported:
		return false
	case r.Status == 404, r.Status == 410:
		return !r.speaksOf(job)
	case r.unasked, r.Status != 0: // a wrong key, a limit, a proxy: the job goes on
		return true
	}
	return r.Class == message.ClassServer // garbled
}

// speaksOf tells whether a server says in its own words that a job is not there: it
// names the job, or the kind of thing that it does not find; one that wraps its errors
// as the Messages API does need not even say that. That there is nothing at an address,
// as a proxy or a wrong base URL has it, says nothing of the job.
func (r *Refusal) speaksOf(job string) bool {
	if !r.worded || job == "" {
		return false
	}
	if strings.Contains(strings.ReplaceAll(r.Text, "/"+job, ""), job) {
		return true
	}
	said := strings.ToLower(r.Kind + " " + r.Text)
	return strings.Contains(r.Kind, "not_found") && !strings.Contains(said, "/") && !strings.Contains(said, "model:") &&
		(r.wrapped || strings.Contains(said, "batch") || strings.Contains(said, "response"))
}

// sentence tells a person what happened, and where.
func (b *Builder) sentence(r *Refusal) string {
	who := b.base.Provider + "/" + b.base.Model
	if u, err := url.Parse(b.base.Address); err == nil && u.Host != "" {
		who += " at " + u.Host
	}
	verb := ": "
	if r.Status != 0 {
		verb = " answered "
	}
	return b.secrets.OutCut(who+verb+r.Error(), cutMark)
}
