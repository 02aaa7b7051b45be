// Package transport makes the HTTP clients that providers send requests with:
// proxies, authorities, time limits, and a trace for people who debug.
package transport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// The limits that hold when Options say nothing. Servers that load a model
// first, or think without a word, are silent for minutes.
const (
	DefaultConnect = 30 * time.Second
	DefaultIdle    = 10 * time.Minute
)

// Options configure a client. The zero value is ready.
type Options struct {
	// CAFile names a PEM file of authorities to trust beside the system's.
	CAFile string
	// Connect limits connecting and, again, agreeing on TLS.
	Connect time.Duration
	// Idle limits each wait for the next byte of a response, the first included.
	Idle time.Duration
	// Trace records requests and responses; nil records nothing.
	Trace *Trace
}

// New returns a client. The environment's HTTP_PROXY, HTTPS_PROXY and NO_PROXY
// count. A redirect is an error: keys would follow it to another host, and what
// was asked would get lost on the way. An error of New says what is wrong with
// the authorities' file.
func New(o Options) (*http.Client, error) {
	if o.Connect <= 0 {
		o.Connect = DefaultConnect
	}
	if o.Idle <= 0 {
		o.Idle = DefaultIdle
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.DialContext = (&net.Dialer{Timeout: o.Connect, KeepAlive: 30 * time.Second}).DialContext
	base.TLSHandshakeTimeout = o.Connect
	if o.CAFile != "" {
		pool, err := authorities(o.CAFile)
		if err != nil {
			return nil, err
		}
		base.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	var rt http.RoundTripper = &patient{next: base, idle: o.Idle}
	if o.Trace != nil {
		rt = &traced{next: rt, trace: o.Trace}
	}
	return &http.Client{Transport: rt, CheckRedirect: refuseRedirect}, nil
}

// authorities returns the system's authorities and those of a file.
func authorities(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read authorities: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read authorities %s: %w", path, errors.New("it holds no certificate in PEM form"))
	}
	return pool, nil
}

// RedirectError is an answer that sent the request elsewhere.
type RedirectError struct{ To string }

func (e *RedirectError) Error() string {
	return "the server redirects to " + e.To + "; redirects are not followed: is that the right base URL?"
}

// Permanent tells that another attempt is redirected alike.
func (e *RedirectError) Permanent() bool { return true }

func refuseRedirect(req *http.Request, _ []*http.Request) error {
	return &RedirectError{To: req.URL.Scheme + "://" + req.URL.Host + req.URL.Path}
}
