package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-run/drover/pkg/engine/effect"
)

// Server is one server: configured, and started when it is needed.
type Server struct {
	config  Config
	version string // of drover, which the server is told

	turn    chan struct{} // held while it starts or ends
	mu      sync.Mutex
	running *connection
	listed  []Listed // of the newest start
	failed  failure  // the newest start that was none
}

// failure is a start that was none; those that have failed are counted.
type failure struct {
	number int
	err    error
}

// connection is a server that was started.
type connection struct {
	session *sdk.ClientSession
	process *process // nil over HTTP
	web     *web     // nil of a program
	dead    chan struct{}
}

// New describes a server and starts nothing. version is the client's that it is
// told.
func New(c Config, version string) *Server {
	s := &Server{config: c, version: version, turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	return s
}

// Name is the server's in the configuration.
func (s *Server) Name() string { return s.config.Name }

// Prefix begins the names of its tools.
func (s *Server) Prefix() string { return s.config.Prefix() }

// Lookup finds a tool by its name SERVER__TOOL, whether or not the server has it:
// that is known once it was started.
func (s *Server) Lookup(name string) (effect.Tool, bool) {
	rest, ok := strings.CutPrefix(name, s.config.Prefix())
	if !ok || rest == "" {
		return nil, false
	}
	return &serverTool{server: s, name: name}, true
}

// Tools starts the server when it does not run, and returns what it lists.
func (s *Server) Tools(ctx context.Context) ([]Listed, error) {
	if _, err := s.connect(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.listed), nil
}

// find returns what is known of a tool, false while the server was never started or
// when it does not list it.
func (s *Server) find(name string) (Listed, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.listed, func(l Listed) bool { return l.Name == name })
	if i < 0 {
		return Listed{}, false
	}
	return s.listed[i], true
}

// connect returns the running server, and starts it when there is none. Who waits
// while it starts gets what comes of that.
func (s *Server) connect(ctx context.Context) (*connection, error) {
	before := s.failure()
	select {
	case <-s.turn:
		defer func() { s.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if c := s.alive(); c != nil {
		return c, nil
	}
	if f := s.failure(); f.number != before.number {
		return nil, f.err
	}
	c, err := s.bringUp(ctx)
	if err != nil && ctx.Err() == nil {
		s.mu.Lock()
		s.failed = failure{s.failed.number + 1, err}
		s.mu.Unlock()
	}
	return c, err
}

func (s *Server) failure() failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// bringUp starts the server and has it list its tools, within the time that it has.
func (s *Server) bringUp(ctx context.Context) (*connection, error) {
	limit := s.config.StartTimeout
	if limit == 0 {
		limit = defaultStart
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it was not there within %v", limit))
	defer cancel()
	c, err := s.start(ctx)
	if err != nil {
		return nil, fmt.Errorf("MCP server %s: %w", s.config.Name, err)
	}
	var listed []Listed
	err = c.request(ctx, func() (err error) {
		listed, err = list(ctx, s.config, c.session)
		return err
	})
	if err != nil {
		err = s.notReady(ctx, c, c.ended(), err)
		c.close()
		return nil, fmt.Errorf("MCP server %s: its tools cannot be listed: %w", s.config.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running, s.listed = c, listed
	return c, nil
}

// alive is the running server, nil when it has died or never ran. A process that is
// gone counts as dead before the session over it has noticed.
func (s *Server) alive() *connection {
	s.mu.Lock()
	c := s.running
	s.mu.Unlock()
	switch {
	case c == nil:
		return nil
	case c.process != nil && c.process.ended() != "":
		s.forget(c)
		c.close()
		return nil
	}
	select {
	case <-c.dead:
		s.forget(c)
		return nil
	default:
		return c
	}
}

// forget has the next use start the server again.
func (s *Server) forget(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == c {
		s.running = nil
	}
}

// start brings the server up and shakes hands.
func (s *Server) start(ctx context.Context) (*connection, error) {
	c := &connection{dead: make(chan struct{})}
	transport, err := c.reach(s.config)
	if err != nil {
		return nil, err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "drover", Version: s.version}, &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}})
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		ended := c.ended()
		if c.process != nil {
			c.process.stop()
		}
		return nil, s.notReady(ctx, c, ended, err)
	}
	c.session = session
	go func() {
		_ = session.Wait() // why it ended is told by the call that fails
		close(c.dead)
	}()
	return c, nil
}

// reach makes the way to the server; that of a program starts it.
func (c *connection) reach(config Config) (sdk.Transport, error) {
	if config.URL == "" {
		p, err := startProcess(config)
		if err != nil {
			return nil, err
		}
		c.process = p
		return p.transport(), nil
	}
	c.web = &web{}
	client, err := config.client(c.web)
	if err != nil {
		return nil, err
	}
	return &sdk.StreamableClientTransport{Endpoint: config.URL, HTTPClient: client, DisableStandaloneSSE: true}, nil
}

// ended says how the process of the connection ended, "" while it runs or when
// there is none.
func (c *connection) ended() string {
	if c.process == nil {
		return ""
	}
	return c.process.ended()
}

// closePatience is how long a server may take to go after its input was closed.
const closePatience = 2 * time.Second

// close ends the connection, and the process behind it.
func (c *connection) close() {
	if c.process != nil {
		// The session's own close would wait for a server that does not listen.
		c.process.stop()
	}
	_ = c.session.Close() // it is over, whatever it says
	<-c.dead
}

// Close ends the server if it runs. It may be started again.
func (s *Server) Close() error {
	<-s.turn
	defer func() { s.turn <- struct{}{} }()
	s.mu.Lock()
	c := s.running
	s.running = nil
	s.mu.Unlock()
	if c != nil {
		c.close()
	}
	return nil
}
