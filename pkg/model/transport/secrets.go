package transport

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/internal/secret"
)

// header appends the headers, sorted.
func (x *exchange) header(b []byte, h http.Header) []byte {
	b = append(b, `,"headers":{`...)
	for i, name := range slices.Sorted(maps.Keys(h)) {
		if i > 0 {
			b = append(b, ',')
		}
		value := secret.Redacted
		if secret.Open(name) {
			value = x.secrets.Out(strings.Join(h[name], ", "))
		}
		b = rawjson.AppendQuote(append(rawjson.AppendQuote(b, name), ':'), value)
	}
	return append(b, '}')
}

// secretsOf collects the secrets of a request: from its headers, its address, and
// its query.
func secretsOf(req *http.Request) *secret.Set {
	all := &secret.Set{}
	for name, values := range req.Header {
		for _, v := range values {
			all.AddHeader(name, v)
		}
	}
	if password, ok := req.URL.User.Password(); ok {
		all.Add(password)
	}
	for name, values := range req.URL.Query() {
		if secret.Named(name) {
			for _, v := range values {
				all.Add(v)
			}
		}
	}
	return all
}
