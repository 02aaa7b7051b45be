package secret

import (
	"net/http"
	"slices"
	"strings"
)

// open are the headers that hold no secret and help to find a fault; those that begin
// like openBeginnings, too.
var open = []string{
	"Accept", "Content-Encoding", "Content-Length", "Content-Type", "Date", "Idempotency-Key", "Openai-Processing-Ms",
	"Openai-Version", "Request-Id", "Retry-After", "Retry-After-Ms", "Server", "Transfer-Encoding", "User-Agent",
	"X-Request-Id", "X-Should-Retry",
}

var openBeginnings = []string{"Anthropic-Beta", "Anthropic-Ratelimit-", "Anthropic-Version", "X-Ratelimit-", "X-Stainless-"}

// Open reports a header that is known to hold no secret.
func Open(header string) bool {
	header = http.CanonicalHeaderKey(header)
	return slices.Contains(open, header) ||
		slices.ContainsFunc(openBeginnings, func(s string) bool { return strings.HasPrefix(header, s) })
}

// words are parts of the names of headers and query parameters that hold a secret.
var words = []string{"auth", "key", "token", "secret", "cookie", "password", "credential", "signature"}

// likely is the length in bytes from which a header's value may be a secret whatever
// its name says.
const likely = 12

// Named reports a header, or a query parameter, whose name says that it holds a secret.
func Named(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(name, w) })
}
