package owner

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/store"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(play(role))
	}
	os.Exit(m.Run())
}

func wantEqual[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.Transformer("text", func(b []byte) string { return string(b) })); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func must[T any](t testing.TB) func(T, error) T {
	return func(x T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

// socketFolder is a folder that the sockets of a test may lie in; the usual one
// has too long a name.
func socketFolder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "o")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// house is an open session with its socket.
type house struct {
	*enginetest.World
	server *Server
	lease  store.Lease
}

// newHouse serves a session in memory. Its model says what reply says.
func newHouse(t *testing.T, reply enginetest.Reply) *house {
	t.Helper()
	return newHouseOn(t, reply, terms{peer: peerUID, line: maxLine, backlog: maxBacklog})
}

func newHouseOn(t *testing.T, reply enginetest.Reply, on terms) *house {
	t.Helper()
	return build(t, enginetest.InMemory(t), reply, on)
}

func build(t *testing.T, world *enginetest.World, reply enginetest.Reply, on terms) *house {
	t.Helper()
	h := &house{World: world}
	*h.Pace = enginetest.Free
	h.Model.Reply = enginetest.Sequence(reply)
	h.Open()
	h.lease = store.Lease{
		OwnerID: "me", Fence: 7, Host: "here", PID: os.Getpid(), Live: true,
		Socket: filepath.Join(socketFolder(t), "0123456789abcdef"),
	}
	o := Options{Harness: h.Harness, Path: h.lease.Socket, OwnerID: "me", Fence: 7, SessionID: "world", Command: "prompt"}
	var err error
	if h.server, err = serve(t.Context(), o, on); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.server.Close() })
	return h
}

func (h *house) dial(t testing.TB) *Client {
	t.Helper()
	c := must[*Client](t)(Dial(t.Context(), h.lease, DialOptions{SessionID: "world", Path: "world.db"}))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// raw is a connection that has been greeted.
func (h *house) raw(t testing.TB) *net.UnixConn {
	t.Helper()
	c := h.dial(t)
	return c.conn
}

// hang starts a run and returns its operation once its answer hangs; ended is
// closed when the drive has ended.
func (h *house) hang(t *testing.T) (operationID string, ended <-chan struct{}) {
	t.Helper()
	operationID = h.Accept("go")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = h.Lane.Drive(context.Background(), engine.DriveOptions{OperationID: operationID})
	}()
	<-h.Model.Hanging()
	return operationID, done
}

// untilBusy waits until a request of another goroutine has been begun; a round trip
// is time enough to look again.
func (h *house) untilBusy(t *testing.T) {
	t.Helper()
	for !h.server.Busy() {
		must[engine.CancelResult](t)(h.Lane.CancelQueued(t.Context(), "nothing"))
	}
}

// queues are the texts that wait on main.
func (h *house) queues(t *testing.T) (q struct{ Steer, FollowUp, NextRun, Writes []string }) {
	t.Helper()
	r := must[engine.LaneReport](t)(h.Lane.Report(t.Context(), false))
	texts := func(items []engine.QueuedItem) (all []string) {
		for _, i := range items {
			all = append(all, i.Message.Text())
		}
		return all
	}
	q.Steer, q.FollowUp, q.NextRun = texts(r.Queues.Steer), texts(r.Queues.FollowUp), texts(r.Queues.NextRun)
	for _, w := range r.PendingWrites {
		q.Writes = append(q.Writes, w.Content.CustomType)
	}
	return q
}

// transcript are the entries of main's branch as one line each.
func (h *house) transcript(t *testing.T) (all []string) {
	t.Helper()
	tree := h.Session.View(store.MainLane)
	leaf := must[store.LeafID](t)(tree.LeafID(t.Context()))
	if leaf == "" {
		return nil
	}
	for _, e := range must[[]store.Entry](t)(tree.ScanBranch(t.Context(), store.BranchQuery{Start: string(leaf), OldestFirst: true})) {
		if m := e.Message(); m != nil {
			all = append(all, string(m.Role())+" "+m.Text())
		} else {
			all = append(all, e.CustomType+" "+string(e.Payload))
		}
	}
	return all
}

func wantIs(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// wantRefusal compares an error with a typed one.
func wantRefusal(t testing.TB, got, want error) {
	t.Helper()
	if got == want {
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("refusal (-want +got):\n%s", diff)
	}
}

// async is an answer that another goroutine waits for.
type async[T any] chan func() (T, error)

func ask[T any](f func() (T, error)) async[T] {
	a := make(async[T], 1)
	go func() {
		x, err := f()
		a <- func() (T, error) { return x, err }
	}()
	return a
}

func (a async[T]) get(t testing.TB) T {
	t.Helper()
	return must[T](t)((<-a)())
}
