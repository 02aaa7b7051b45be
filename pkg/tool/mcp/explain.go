package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// notReady says, to somebody who can do something about it, why a server is not
// there. The connection may have ended, and is nil when there never was one; ended
// is how its process had ended before drover ended it, "" when it had not.
func (s *Server) notReady(ctx context.Context, c *connection, ended string, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			cause = fmt.Errorf("%w; start_timeout gives it longer", cause)
		}
		return cause
	}
	if c == nil {
		return err
	}
	if c.process == nil {
		return s.plain(c, err)
	}
	if failed := c.process.unstarted(); failed != "" {
		return fmt.Errorf("it cannot be started: %s; its argv says what runs", failed)
	}
	if line := c.process.head.stray(); line != "" {
		return fmt.Errorf("it prints %q, which is no message of the protocol: a server keeps its standard output for those", line)
	}
	if ended != "" {
		return fmt.Errorf("it ended before it was ready, with %s", ended)
	}
	return s.plain(c, err)
}

// plain tells an error of the SDK in words that are not about its insides, and
// without what the headers keep secret: a server may repeat that.
func (s *Server) plain(c *connection, err error) error {
	text := s.explain(c, err).Error()
	return errors.New(s.config.keys().Out(text))
}

func (s *Server) explain(c *connection, err error) error {
	if c.web != nil {
		if said, _ := c.web.said(); said != "" {
			return fmt.Errorf("%s %s", s.address(), said)
		}
	}
	if refused := refusal(err); refused != nil {
		return fmt.Errorf("it refuses: %s", refused.Message)
	}
	text := jargon().ReplaceAllString(err.Error(), "")
	switch {
	case strings.Contains(text, "maximum line length"):
		return errors.New("its answer is longer than drover reads")
	case strings.HasSuffix(text, "message: EOF"):
		return errors.New("its answer is empty")
	case unreadable().MatchString(text):
		return fmt.Errorf("its answer is not what the protocol asks for: %s", short(text))
	}
	if c.web != nil {
		return fmt.Errorf("%s does not answer as an MCP server does: %s", s.address(), text)
	}
	return errors.New(text)
}

// refusal is the error that a server has sent, nil when err is another.
func refusal(err error) *jsonrpc.Error {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || e.Message == "" || inner(e) {
		return nil
	}
	return e
}

// unreadable tells what JSON decoding says of an answer.
func unreadable() *regexp.Regexp {
	return regexp.MustCompile(`(?:^|: )(?:json: |invalid character |unexpected end of JSON|unmarshal)`)
}

// short leaves out what a decoder says of Go's types.
func short(text string) string {
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "json: "), " into Go ")
	return text
}

// inner tells an error that the SDK makes itself from one that a server has sent.
func inner(e *jsonrpc.Error) bool { return e.Code <= -32003 && e.Code >= -32005 }

// jargon is what the SDK puts in front of an error while it passes it on.
func jargon() *regexp.Regexp {
	return regexp.MustCompile(`(?:calling|sending) "[A-Za-z/]+": |connection closed: |client is closing: |rejected by transport: `)
}

// address is where the server is reached, without what may be a key.
func (s *Server) address() string {
	u, err := url.Parse(s.config.URL)
	if err != nil {
		return "its url"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
