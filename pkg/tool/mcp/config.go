package mcp

import (
	"net/http"
	"strings"
	"time"

	"github.com/drover-run/drover/internal/secret"
)

// Config describes one server: a program that speaks over its standard streams, or
// an address that speaks streamable HTTP.
type Config struct {
	Name string
	// Argv is the program and its arguments, Dir where it runs, Env all that it sees
	// of the environment, Self as in tool.Command.
	Argv []string
	Dir  string
	Env  []string
	Self string
	// URL is the address, Headers go with every request, Client makes what sends
	// them.
	URL     string
	Headers map[string]string
	Client  func() (*http.Client, error)
	// StartTimeout bounds the start with the first list of tools, CallTimeout a
	// call; 0 is a minute for the first and no bound for the other.
	StartTimeout, CallTimeout time.Duration
	// Safe tells, by the server's names, which interrupted calls may run again.
	// TrustAnnotations takes a server's word for the others (D47).
	Safe             map[string]bool
	TrustAnnotations bool
	// Rename gives tools other names than the server does.
	Rename map[string]string
}

// defaultStart is how long a server may take to be there.
const defaultStart = time.Minute

// separator stands between a server's name and a tool's.
const separator = "__"

// Prefix begins the names of a server's tools.
func (c Config) Prefix() string { return c.Name + separator }

// exposed is the name by which models call a tool of the server.
func (c Config) exposed(name string) string {
	if other, ok := c.Rename[name]; ok {
		name = other
	}
	return c.Prefix() + name
}

// suggestion is a name that would do in the place of one that would not.
func suggestion(prefix, name string) string {
	fitting := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	return fitting[:max(1, min(len(fitting), maxName-len(prefix)))]
}

// keys are what the headers keep secret.
func (c Config) keys() *secret.Set {
	keys := &secret.Set{}
	for name, value := range c.Headers {
		keys.AddHeader(name, value)
	}
	return keys
}

// client is what speaks with an address, through w.
func (c Config) client(w *web) (*http.Client, error) {
	client, err := c.Client()
	if err != nil {
		return nil, err
	}
	watched := *client
	w.next, w.headers, w.keys = client.Transport, c.Headers, c.keys()
	watched.Transport = w
	return &watched, nil
}
