package owner

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/drover-run/drover/pkg/engine"
)

const (
	// maxBacklog is how far a watcher may fall behind before it is dropped, in
	// bytes: it must not slow the run down, nor fill the memory.
	maxBacklog = 64 << 20
	// grace is how long a closing owner waits for a client to take what is left.
	grace = time.Second
)

// Options describe an owner to the clients that look for it.
type Options struct {
	// Harness serves the requests. Nil is an owner that serves no engine: every
	// request is refused with lease_held and what it is doing (D25).
	Harness *engine.Harness
	// Path is where to listen: SocketPath in Folder, as the lease says.
	Path string
	// OwnerID and Fence are the lease's, SessionID is the session's.
	OwnerID   string
	Fence     int64
	SessionID string
	// Command says what this process is doing, such as "rewrite".
	Command string
}

// Server is the owner's side. Its methods are safe for concurrent use.
type Server struct {
	o        Options
	t        terms
	listener *net.UnixListener
	ctx      context.Context
	stop     context.CancelFunc
	unwatch  func() bool // of the context that Serve was given

	work     work
	intents  intents
	receipts receipts
	running  sync.WaitGroup

	mu      sync.Mutex
	conns   map[*net.UnixConn]bool
	closing bool
}

// terms are what tests change.
type terms struct {
	peer    func(*net.UnixConn) (int, error)
	line    int
	backlog int
}

// Serve listens until Close, or until the context ends. What a killed owner left
// at the path or in its folder is removed. It fails with *FolderError when the
// folder of the path is not this user's own.
func Serve(ctx context.Context, o Options) (*Server, error) {
	return serve(ctx, o, terms{peer: peerUID, line: maxLine, backlog: maxBacklog})
}

func serve(ctx context.Context, o Options, t terms) (*Server, error) {
	folder := filepath.Dir(o.Path)
	if err := checkFolder(folder); err != nil {
		return nil, err
	}
	sweep(folder, time.Now())
	l, err := listen(o.Path)
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, t: t, listener: l, conns: make(map[*net.UnixConn]bool)}
	s.ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.unwatch = context.AfterFunc(ctx, s.shut)
	s.running.Go(s.accept)
	return s, nil
}

// Close stops listening, removes the socket, answers what is unanswered with
// "closed", and returns when nothing of the server runs any more. It is
// idempotent.
func (s *Server) Close() error {
	s.unwatch()
	s.shut()
	s.running.Wait()
	return nil
}

// Busy reports whether something that came over the socket has not settled yet.
func (s *Server) Busy() bool { return s.work.busy() }

// Quiesce waits until all that was accepted has settled, and refuses everything
// from that moment on: then the process may close the session (D25). It also ends
// every Driving. Watchers go on until Close.
func (s *Server) Quiesce(ctx context.Context) error {
	s.intents.end()
	if err := s.work.settle(ctx); err != nil {
		return fmt.Errorf("wait for accepted requests: %w", err)
	}
	return nil
}

// Driving says that this process is going to drive a lane, before it accepts an
// operation there and between passes: until done is called, an open operation
// without a pass does not end a client's wait.
func (s *Server) Driving(lane string) (done func()) { return s.intents.hold(lane) }

// shut lets every conversation come to its end.
func (s *Server) shut() {
	s.stop()
	// Closing also removes the socket.
	_ = s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return
	}
	s.closing = true
	now := time.Now()
	for c := range s.conns {
		_ = c.SetReadDeadline(now)
		_ = c.SetWriteDeadline(now.Add(grace))
	}
}

func (s *Server) accept() {
	for {
		c, err := s.listener.AcceptUnix()
		switch {
		case err == nil:
			if s.add(c) {
				s.running.Go(func() { s.converse(c) })
			}
		case s.ctx.Err() != nil, errors.Is(err, net.ErrClosed):
			return
		default:
			// Out of descriptors, most likely: the ones in use will be closed.
			pause := time.NewTimer(50 * time.Millisecond)
			select {
			case <-pause.C:
			case <-s.ctx.Done():
			}
			pause.Stop()
		}
	}
}

func (s *Server) add(c *net.UnixConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		_ = c.Close()
		return false
	}
	s.conns[c] = true
	return true
}

func (s *Server) drop(c *net.UnixConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	_ = c.Close()
}

// line is what a client sent, or why it cannot be read.
type line struct {
	text []byte
	err  error
}

// converse serves one connection, one request after the other.
func (s *Server) converse(c *net.UnixConn) {
	defer s.drop(c)
	if uid, err := s.t.peer(c); err != nil || uid != os.Getuid() {
		return
	}
	// The client that goes away takes back what waits for its sake.
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	lines := make(chan line)
	s.running.Go(func() {
		defer close(lines)
		defer cancel()
		s.read(ctx, c, lines)
	})
	if !s.greet(c, <-lines) {
		return
	}
	for l := range lines {
		if s.answer(ctx, c, l) != nil {
			return
		}
	}
}

func (s *Server) read(ctx context.Context, c *net.UnixConn, lines chan<- line) {
	r := bufio.NewReaderSize(c, 64<<10)
	for {
		text, err := readLine(r, s.t.line)
		if err != nil && !errors.Is(err, errTooLong) {
			return
		}
		select {
		case lines <- line{text, err}:
		case <-ctx.Done():
			return
		}
	}
}

// greet answers a client that means this owner; any other one is left alone (D24).
func (s *Server) greet(c *net.UnixConn, l line) bool {
	me := identity{s.o.SessionID, s.o.OwnerID, s.o.Fence}
	if who, err := parseIdentity(l.text); l.err != nil || err != nil || who != me {
		return false
	}
	_, err := c.Write(me.line())
	return err == nil
}
