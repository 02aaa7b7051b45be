package program

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/drover-run/drover/pkg/engine/effect"
)

// maxSocketPath is the longest path that every system accepts for a socket, in
// bytes.
const maxSocketPath = 107

// memoServer gives the program of one call, and whom that gives the token, the
// memos of the call (D46): a request and an answer a connection, each one line.
type memoServer struct {
	path  string
	token string

	memos    effect.Memos
	listener *net.UnixListener
	ctx      context.Context // ends with the server
	end      context.CancelFunc
	serving  sync.WaitGroup
}

// serveMemos listens in a folder that must be private. The socket's name is like
// those of session owners, who remove what is left there of killed processes.
func serveMemos(ctx context.Context, folder string, memos effect.Memos) (*memoServer, error) {
	path := filepath.Join(folder, randomHex(8))
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("%s has a name too long for a socket", folder)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s := &memoServer{path: path, token: randomHex(16), memos: memos, listener: l}
	// A program that is asked to end may still save where it stood.
	s.ctx, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.serving.Go(s.accept)
	return s, nil
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// close takes the socket away and waits for the requests that are under way.
func (s *memoServer) close() {
	s.end()
	s.listener.Close()
	s.serving.Wait()
}

func (s *memoServer) accept() {
	for {
		conn, err := s.listener.AcceptUnix()
		if err != nil {
			return // closed, or of no use any more
		}
		s.serving.Go(func() { s.serve(conn) })
	}
}

func (s *memoServer) serve(conn *net.UnixConn) {
	defer conn.Close()
	defer context.AfterFunc(s.ctx, func() { conn.Close() })()
	line, err := readLine(conn, maxMemoLine)
	var a answer
	if err == nil {
		a, err = s.do(line)
	}
	if err != nil {
		a = answer{err: err.Error()}
	}
	_, _ = conn.Write(a.append(nil)) // who asked may be gone
}

// do answers a request.
func (s *memoServer) do(line []byte) (answer, error) {
	r, err := parseRequest(line)
	if err != nil {
		return answer{}, err
	}
	if subtle.ConstantTimeCompare([]byte(r.token), []byte(s.token)) != 1 {
		return answer{}, errors.New("the token is not that of this call")
	}
	if r.value != nil {
		return answer{}, s.memos.Set(s.ctx, r.name, r.value)
	}
	value, _, err := s.memos.Get(s.ctx, r.name)
	return answer{value: value}, err
}
