package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

// serverTool is one tool of a server, known by name only until it was started.
type serverTool struct {
	server *Server
	name   string
}

var _ effect.Starter = (*serverTool)(nil)

// Spec implements effect.Tool. Before the server's start nothing but the name is
// known.
func (t *serverTool) Spec() message.ToolSpec {
	if l, ok := t.server.find(t.name); ok {
		return l.Spec
	}
	return message.ToolSpec{Name: t.name, Parameters: json.RawMessage(`{"type":"object"}`)}
}

// ReplaySafe implements effect.Tool (D47).
func (t *serverTool) ReplaySafe() bool {
	c := t.server.config
	l, listed := t.server.find(t.name)
	if !listed {
		l.Remote = t.remote()
	}
	if safe, said := c.Safe[l.Remote]; said {
		return safe
	}
	return listed && c.TrustAnnotations && l.safeHint
}

// remote is the server's own name of a tool that it has not listed yet.
func (t *serverTool) remote() string {
	c := t.server.config
	for name := range c.Rename {
		if c.exposed(name) == t.name {
			return name
		}
	}
	return strings.TrimPrefix(t.name, c.Prefix())
}

// Start implements effect.Starter: it starts the server, which must list the tool.
func (t *serverTool) Start(ctx context.Context) error {
	all, err := t.server.Tools(ctx)
	if err != nil {
		return err
	}
	l, ok := t.server.find(t.name)
	switch {
	case !ok:
		return fmt.Errorf("MCP server %s has no tool %s; it has %s", t.server.config.Name, t.name, offered(all))
	case !l.Offered:
		return fmt.Errorf("MCP server %s: %s: %s", t.server.config.Name, t.name, l.Problem)
	}
	return nil
}

// offered names the tools that a server offers, some of them when there are many.
func offered(all []Listed) string {
	const most = 20
	var names []string
	for _, l := range all {
		if l.Offered {
			names = append(names, l.Name)
		}
	}
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		names = append(names[:most], "...")
	}
	return strings.Join(names, ", ")
}

// Prepare implements effect.Tool: arguments are checked where the server's schema
// can be; the server checks them again.
func (t *serverTool) Prepare(args json.RawMessage) (json.RawMessage, error) {
	l, ok := t.server.find(t.name)
	if !ok || l.schema == nil {
		return args, nil
	}
	return args, l.schema.Validate(args)
}

// Execute implements effect.Tool. A server that died since is started again.
func (t *serverTool) Execute(ctx context.Context, call effect.Invocation) (message.ToolResult, error) {
	s := t.server
	if limit := s.config.CallTimeout; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("the call took longer than %v", limit))
		defer cancel()
	}
	c, err := s.connect(ctx)
	if err != nil {
		return message.ToolResult{}, err
	}
	l, ok := s.find(t.name)
	if !ok || !l.Offered {
		return message.ToolResult{}, fmt.Errorf("MCP server %s has no tool %s any more", s.config.Name, t.name)
	}
	var r *sdk.CallToolResult
	err = c.request(ctx, func() (err error) {
		r, err = c.session.CallTool(ctx, &sdk.CallToolParams{Name: l.Remote, Arguments: call.Args})
		return err
	})
	if err != nil {
		return message.ToolResult{}, fmt.Errorf("MCP server %s: %w", s.config.Name, t.failed(ctx, c, err))
	}
	return result(r, s.config.keys())
}

// request waits for a request to the server. A program that does not read what it is
// sent would hold it up beyond the end of its context, and is ended then.
func (c *connection) request(ctx context.Context, send func() error) error {
	if c.process == nil {
		return send()
	}
	sent := make(chan error, 1)
	go func() { sent <- send() }()
	select {
	case err := <-sent:
		return err
	case <-ctx.Done():
	}
	patience := time.NewTimer(closePatience)
	defer patience.Stop()
	select {
	case err := <-sent:
		return err
	case <-patience.C:
		c.process.cancel()
		c.process.stop()
		return <-sent
	}
}

// failed explains a call that got no answer.
func (t *serverTool) failed(ctx context.Context, c *connection, err error) error {
	switch ctx.Err() {
	case nil:
	case context.DeadlineExceeded:
		return fmt.Errorf("%w; it may have had its effect", context.Cause(ctx))
	default:
		return context.Cause(ctx)
	}
	if errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, io.EOF) {
		t.server.forget(c)
		c.settle()
		how := ""
		if ended := c.ended(); ended != "" {
			how = " (" + ended + ")"
		}
		return fmt.Errorf("it died during the call, which may have had its effect; the next call starts it again%s", how)
	}
	if errors.Is(err, sdk.ErrSessionMissing) {
		t.server.forget(c)
		return errors.New("it has ended the session, and the call was not made; the next call begins another")
	}
	told := t.server.plain(c, err)
	if refusal(err) == nil && !c.turnedDown() {
		told = fmt.Errorf("%w; the call may have had its effect", told)
	}
	return told
}

// turnedDown reports that the last request was refused before it came to a server.
func (c *connection) turnedDown() bool {
	if c.web == nil {
		return false
	}
	_, status := c.web.said()
	return 300 <= status && status < http.StatusInternalServerError
}

// settle ends what is left of a server whose connection has broken.
func (c *connection) settle() {
	if c.process != nil {
		c.close()
	}
}
