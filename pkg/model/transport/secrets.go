package transport

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
)

const redacted = "[redacted]"

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
		value := redacted
		if isShown(name) {
			value = x.secrets.out(strings.Join(h[name], ", "))
		}
		b = rawjson.AppendQuote(append(rawjson.AppendQuote(b, name), ':'), value)
	}
	return append(b, '}')
}

// secrets takes what a request keeps secret out of texts.
type secrets struct{ replacer *strings.Replacer }

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
// its query. The form in a JSON text or an address may differ from the plain one.
func secretsOf(req *http.Request) secrets {
	var plain []string
	for name, values := range req.Header {
		if isShown(name) {
			continue
		}
		for _, v := range values {
			if isSecret(name) || len(v) >= likelySecret {
				plain = append(plain, credentials(v)...)
			}
		}
	}
	if password, ok := req.URL.User.Password(); ok {
		plain = append(plain, password)
	}
	for name, values := range req.URL.Query() {
		if isSecret(name) {
			plain = append(plain, values...)
		}
	}
	// The longest first: one secret may be a part of another.
	slices.SortFunc(plain, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, s := range plain {
		for _, form := range forms(s) {
			if form != "" {
				pairs = append(pairs, form, redacted)
			}
		}
	}
	return secrets{strings.NewReplacer(pairs...)}
}

// forms are the spellings of a text: plain, in an address, in JSON, and in JSON
// that is safe in a page.
func forms(s string) []string {
	quoted := rawjson.Quote(s)
	safe, err := json.Marshal(s)
	if err != nil {
		safe = quoted
	}
	return []string{s, url.QueryEscape(s), url.PathEscape(s), string(quoted[1 : len(quoted)-1]), string(safe[1 : len(safe)-1])}
}

// credentials are the secrets in a header's value, which may name a scheme first:
// `Bearer KEY`, `Basic BASE64` with its password.
func credentials(value string) []string {
	all := []string{value}
	scheme, rest, ok := strings.Cut(value, " ")
	if !ok {
		return all
	}
	rest = strings.TrimSpace(rest)
	all = append(all, rest)
	if plain, err := base64.StdEncoding.DecodeString(rest); err == nil && strings.EqualFold(scheme, "basic") {
		if _, password, ok := strings.Cut(string(plain), ":"); ok {
			all = append(all, password)
		}
	}
	return all
}

func (s secrets) out(text string) string { return s.replacer.Replace(text) }
