package transport

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/internal/secret"
)

// shown are the headers that hold no secret and help to find a fault; those that
// begin like shownBeginnings, too. Any other value is redacted.
var shown = []string{
	"Accept", "Content-Encoding", "Content-Length", "Content-Type", "Date", "Idempotency-Key", "Openai-Processing-Ms",
	"Openai-Version", "Request-Id", "Retry-After", "Retry-After-Ms", "Server", "Transfer-Encoding", "User-Agent",
	"X-Request-Id", "X-Should-Retry",
}

var shownBeginnings = []string{"Anthropic-Beta", "Anthropic-Ratelimit-", "Anthropic-Version", "X-Ratelimit-", "X-Stainless-"}

func isShown(name string) bool {
	return slices.Contains(shown, name) ||
		slices.ContainsFunc(shownBeginnings, func(s string) bool { return strings.HasPrefix(name, s) })
}

// header appends the headers, sorted.
func (x *exchange) header(b []byte, h http.Header) []byte {
	b = append(b, `,"headers":{`...)
	for i, name := range slices.Sorted(maps.Keys(h)) {
		if i > 0 {
			b = append(b, ',')
		}
		value := secret.Redacted
		if isShown(name) {
			value = x.secrets.Out(strings.Join(h[name], ", "))
		}
		b = rawjson.AppendQuote(append(rawjson.AppendQuote(b, name), ':'), value)
	}
	return append(b, '}')
}

// keyWords are parts of the names of headers and query parameters that hold a
// secret.
var keyWords = []string{"auth", "key", "token", "secret", "cookie", "password", "credential", "signature"}

// likelySecret is the length in bytes from which a header's value may be a secret
// whatever its name says.
const likelySecret = 12

func isSecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(keyWords, func(w string) bool { return strings.Contains(name, w) })
}

// secretsOf collects the secrets of a request: from its headers, its address, and
// its query.
func secretsOf(req *http.Request) *secret.Set {
	all := &secret.Set{}
	for name, values := range req.Header {
		if isShown(name) {
			continue
		}
		for _, v := range values {
			if isSecret(name) || len(v) >= likelySecret {
				all.AddHeader(v)
			}
		}
	}
	if password, ok := req.URL.User.Password(); ok {
		all.Add(password)
	}
	for name, values := range req.URL.Query() {
		if isSecret(name) {
			for _, v := range values {
				all.Add(v)
			}
		}
	}
	return all
}
