package model

import (
	"context"
	"net/http"
)

// Endpoint is where and how a provider is reached.
type Endpoint struct {
	// Provider is the name that model references use.
	Provider string
	// BaseURL is where requests go; "" is the vendor's own address.
	BaseURL string
	// Key returns the secret of a request when one is about to be made; nil when
	// none is needed. What it returns is neither stored nor logged.
	Key func(context.Context) (string, error)
	// Unusable says why no request can be made, such as a variable that is not
	// set; "" when one can. It is the reason of the *effect.UnknownModel that the
	// provider resolves to.
	Unusable string
	// Headers are sent with every request.
	Headers map[string]string
	// Client makes the requests: it holds proxy, authorities, timeouts, tracing.
	Client *http.Client
	Models Catalogue
}
