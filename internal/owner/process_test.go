package owner

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/storetest"
)

// What a re-executed test binary plays, and where.
const (
	roleEnv   = "OWNER_TEST_ROLE"
	dirEnv    = "OWNER_TEST_DIR"
	socketEnv = "OWNER_TEST_SOCKET"
)

// play is the other process of a test. It says what it does on stdout, a line at
// a time, and does what it is told on stdin.
func play(role string) int {
	var err error
	switch role {
	case "owner", "doomed":
		err = playOwner(role == "doomed")
	case "stranger":
		err = playStranger()
	case "strange owner":
		err = playStrangeOwner()
	}
	if err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	return 0
}

// playOwner owns a session and serves it; "drive" runs a prompt whose answer
// hangs, the end of stdin closes everything. A doomed one dies by SIGKILL the
// moment something queued is durable.
func playOwner(doomed bool) error {
	ctx := context.Background()
	s, lease, err := openSession(ctx, os.Getenv(dirEnv), os.Getenv(socketEnv), doomed)
	if err != nil {
		return err
	}
	model := &hanger{hangs: make(chan struct{}, 1)}
	h, err := engine.New(ctx, engine.Options{Session: s, Models: model})
	if err != nil {
		return err
	}
	server, err := Serve(ctx, Options{Harness: h, Path: lease.Socket, OwnerID: lease.OwnerID, Fence: lease.Fence, SessionID: "s", Command: "prompt"})
	if err != nil {
		return err
	}
	fmt.Println("serving")
	driven := make(chan error, 1)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if in.Text() == "drive" {
			go func() { driven <- prompt(ctx, h) }()
			<-model.hangs
			fmt.Println("hanging")
		}
		if in.Text() == "join" {
			fmt.Println("driven", <-driven)
		}
	}
	return errors.Join(server.Quiesce(ctx), server.Close(), h.Close())
}

func prompt(ctx context.Context, h *engine.Harness) error {
	lane, err := h.Lane(store.MainLane)
	if err != nil {
		return err
	}
	d, err := lane.Prompt(ctx, engine.Request{Text: "go"})
	if err == nil && d.Outcome != nil {
		fmt.Println("outcome", d.Outcome.Kind)
	}
	return err
}

func openSession(ctx context.Context, dir, folder string, doomed bool) (*store.Session, *store.Lease, error) {
	repo, err := store.NewRepo(store.RepoOptions{
		Dir: dir,
		Drivers: []store.Driver{storetest.Wrap(jsonl.Driver{}, func(b store.Backend) store.Backend {
			if doomed {
				return doom{b}
			}
			return b
		})},
		Open: store.OpenOptions{Socket: func(path string, fence int64) string {
			socket, _ := SocketPath(folder, path, fence)
			return socket
		}},
	})
	if err != nil {
		return nil, nil, err
	}
	ref, err := repo.Resolve(ctx, "s")
	if err != nil {
		return nil, nil, err
	}
	s, err := repo.Open(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	lease, err := repo.Lease(ctx, ref)
	return s, lease, err
}

// doom kills the process right after it has committed something queued.
type doom struct{ store.Backend }

func (d doom) Commit(ctx context.Context, tx store.Tx) (store.CommitResult, error) {
	res, err := d.Backend.Commit(ctx, tx)
	for _, w := range tx {
		if w.Address.Namespace == "pi.pending.entry" {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	return res, err
}

// hanger is a model that never answers.
type hanger struct{ hangs chan struct{} }

func (m *hanger) Resolve(message.ModelRef) (effect.Model, error) { return m, nil }
func (m *hanger) Info() effect.ModelInfo {
	return effect.ModelInfo{Ref: ref, API: "none", ContextWindow: 10_000}
}

var ref = message.ModelRef{Provider: "acme", ModelID: "one"}

func (m *hanger) Stream(ctx context.Context, req effect.Request) effect.Events {
	if why := enginetest.Complaint(req); why != "" {
		panic(why)
	}
	return func(yield func(message.StreamEvent) bool) {
		m.hangs <- struct{}{}
		<-ctx.Done()
		a := message.Assistant{API: "none", Provider: "acme", Model: "one", StopReason: message.StopAborted, Timestamp: req.Now}
		yield(message.StreamEvent{Type: message.EventError, Reason: message.StopAborted, Message: a.Message()})
	}
}

// process is the other process as a test sees it.
type process struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t *testing.T, binary, role string, env ...string) *process {
	t.Helper()
	cmd := exec.Command(binary)
	cmd.Env = append(append(os.Environ(), roleEnv+"="+role), env...)
	cmd.Stderr = os.Stderr
	p := &process{Cmd: cmd, in: must[io.WriteCloser](t)(cmd.StdinPipe())}
	p.out = bufio.NewReader(must[io.ReadCloser](t)(cmd.StdoutPipe()))
	return p
}

func (p *process) run(t *testing.T) *process {
	t.Helper()
	must[any](t)(nil, p.Start())
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
	})
	return p
}

func (p *process) tell(t *testing.T, text string) {
	t.Helper()
	must[int](t)(io.WriteString(p.in, text+"\n"))
}

func (p *process) says(t *testing.T, want string) {
	t.Helper()
	got, err := p.out.ReadString('\n')
	if strings.TrimSpace(got) != want {
		t.Fatalf("the other process says %q (%v), want %q", got, err, want)
	}
}

// kill ends the process as nothing can handle, and waits until it is gone.
func (p *process) kill(t *testing.T) {
	t.Helper()
	must[any](t)(nil, p.Process.Kill())
	_ = p.Wait()
}

// town is a session on disk that other processes own in turn.
type town struct {
	dir, folder string
	repo        *store.Repo
	ref         store.Ref
}

func newTown(t *testing.T) *town {
	t.Helper()
	w := &town{dir: t.TempDir(), folder: socketFolder(t)}
	w.repo = must[*store.Repo](t)(store.NewRepo(store.RepoOptions{Dir: w.dir, Drivers: []store.Driver{jsonl.Driver{}}}))
	cfg := store.LaneConfiguration{Model: ref, ThinkingLevel: message.ThinkingOff, ActiveToolNames: []string{}}
	s, ref, err := w.repo.Create(t.Context(), store.CreateOptions{ID: "s", Config: &cfg})
	must[any](t)(nil, err)
	must[any](t)(nil, s.Close())
	w.ref = ref
	return w
}

// owner starts an owner and waits until it serves.
func (w *town) owner(t *testing.T, role string) *process {
	t.Helper()
	p := start(t, os.Args[0], role, dirEnv+"="+w.dir, socketEnv+"="+w.folder).run(t)
	p.says(t, "serving")
	return p
}

func (w *town) lease(t *testing.T) store.Lease {
	t.Helper()
	l := must[*store.Lease](t)(w.repo.Lease(t.Context(), w.ref))
	if l == nil {
		t.Fatal("nobody owns the session")
	}
	return *l
}

func (w *town) dial(t *testing.T) *Client {
	t.Helper()
	c := must[*Client](t)(Dial(t.Context(), w.lease(t), DialOptions{SessionID: "s", Path: w.ref.Path}))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// current is the open operation of main, as the file says.
func (w *town) current(t *testing.T) string {
	t.Helper()
	r := must[store.Reader](t)(w.repo.View(t.Context(), w.ref))
	defer r.Close()
	reports := must[[]engine.LaneReport](t)(engine.Inspect(t.Context(), r, engine.InspectOptions{}))
	if reports[0].Current == nil {
		return ""
	}
	return reports[0].Current.ID
}

func (w *town) nextRun(t *testing.T) (texts []string) {
	t.Helper()
	r := must[store.Reader](t)(w.repo.View(t.Context(), w.ref))
	defer r.Close()
	reports := must[[]engine.LaneReport](t)(engine.Inspect(t.Context(), r, engine.InspectOptions{}))
	for _, item := range reports[0].Queues.NextRun {
		texts = append(texts, item.Message.Text())
	}
	return texts
}

// Another process's run that hangs is cancelled and has ended within a second,
// and the owner leaves in good order.
func TestAbortInAnotherProcess(t *testing.T) {
	w := newTown(t)
	p := w.owner(t, "owner")
	p.tell(t, "drive")
	p.says(t, "hanging")
	id := w.current(t)
	c := w.dial(t)
	began := time.Now()
	r := must[AbortResult](t)(c.Abort(t.Context(), "", id, false))
	outcome := must[json.RawMessage](t)(c.WaitOperation(t.Context(), "", id))
	if took := time.Since(began); took > time.Second {
		t.Errorf("the run ended %v after it was aborted", took)
	}
	wantEqual(t, "newly requested", r.NewlyRequested, true)
	if kind, _ := must[fields](t)(parseFields(outcome)).text("kind"); kind != "aborted" {
		t.Errorf("outcome %s", outcome)
	}
	p.says(t, "outcome aborted")
	p.tell(t, "join")
	p.says(t, "driven <nil>")

	watched := make(chan error, 1)
	snapshot := make(chan struct{})
	watcher := w.dial(t)
	go func() {
		watched <- watcher.Watch(context.Background(), "", func(Sight) error { close(snapshot); return nil })
	}()
	<-snapshot
	lease := w.lease(t)
	must[any](t)(nil, p.in.Close())
	wantIs(t, <-watched, ErrClosing)
	must[any](t)(nil, p.Wait())
	_, err := Dial(t.Context(), lease, DialOptions{SessionID: "s"})
	wantIs(t, err, ErrGone)
	wantEqual(t, "sockets left", len(must[[]os.DirEntry](t)(os.ReadDir(w.folder))), 0)
}

// An owner that is killed while a client waits is gone at once, its session is
// free, and its socket does not stand in the next one's way (bugs B13, B15).
func TestKilledOwner(t *testing.T) {
	w := newTown(t)
	p := w.owner(t, "owner")
	p.tell(t, "drive")
	p.says(t, "hanging")
	lease, id := w.lease(t), w.current(t)
	waiter, idle := w.dial(t), w.dial(t)
	waiting := make(chan error, 1)
	go func() {
		_, err := waiter.WaitOperation(context.Background(), "", id)
		waiting <- err
	}()
	must[[]LaneStatus](t)(idle.Inspect(t.Context(), "", false))
	p.kill(t)
	wantIs(t, <-waiting, ErrGone)
	wantIs(t, idle.SetName(t.Context(), "x"), ErrGone)
	_, err := Dial(t.Context(), lease, DialOptions{SessionID: "s"})
	wantIs(t, err, ErrGone)
	wantIs(t, err, syscall.ECONNREFUSED)

	next := w.owner(t, "owner")
	wantEqual(t, "fence", w.lease(t).Fence, lease.Fence+1)
	outcome := must[json.RawMessage](t)(w.dial(t).WaitOperation(t.Context(), "", id))
	wantEqual(t, "outcome", string(outcome), "")
	_, err = Dial(t.Context(), lease, DialOptions{SessionID: "s"})
	wantIs(t, err, ErrGone)
	must[any](t)(nil, next.in.Close())
	must[any](t)(nil, next.Wait())

	// The dead owner's own name is free for one who comes to have it again.
	s := must[*Server](t)(Serve(t.Context(), Options{Path: lease.Socket}))
	must[any](t)(nil, s.Close())
}

// An owner dies between the commit and its answer. Repeating the request on the
// file, or with the next owner, finds it done (D25).
func TestOwnerKilledBeforeItsAnswer(t *testing.T) {
	w := newTown(t)
	p := w.owner(t, "doomed")
	c := w.dial(t)
	q := engine.Queued{EntryID: c.minted(""), Text: "once"}
	_, err := c.NextRun(t.Context(), "", q)
	wantIs(t, err, ErrGone)
	_ = p.Wait()
	wantEqual(t, "queue after the death", w.nextRun(t), []string{"once"})

	s := must[*store.Session](t)(w.repo.Open(t.Context(), w.ref))
	h := must[*engine.Harness](t)(engine.New(t.Context(), engine.Options{Session: s, Models: &hanger{}}))
	lane := must[*engine.Lane](t)(h.Lane(store.MainLane))
	must[string](t)(lane.NextRun(t.Context(), q))
	must[any](t)(nil, h.Close())
	wantEqual(t, "queue after the repeat on the file", w.nextRun(t), []string{"once"})

	w.owner(t, "owner")
	got := must[Placement](t)(w.dial(t).NextRun(t.Context(), "", q))
	wantEqual(t, "placement", got, Placement{EntryID: q.EntryID, Queued: true, Already: true})
	wantEqual(t, "queue after the repeat with the next owner", w.nextRun(t), []string{"once"})
}

// An owner that is stopped does not hold its clients for ever.
func TestStoppedOwner(t *testing.T) {
	w := newTown(t)
	p := w.owner(t, "owner")
	c := w.dial(t)
	lease := w.lease(t)
	must[any](t)(nil, p.Process.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus
	must[int](t)(syscall.Wait4(p.Process.Pid, &status, syscall.WUNTRACED, nil)) // until it has stopped
	_, err := Dial(t.Context(), lease, DialOptions{SessionID: "s", Timeout: 50 * time.Millisecond})
	wantIs(t, err, ErrGone)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	wantIs(t, c.SetName(ctx, "x"), context.DeadlineExceeded)
	must[any](t)(nil, p.Process.Signal(syscall.SIGCONT))
	must[any](t)(nil, w.dial(t).SetName(t.Context(), "x"))
}

// asNobody copies the test binary to where another user can run it.
func asNobody(t *testing.T, role, socket string) *process {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can play another user")
	}
	dir := socketFolder(t)
	must[any](t)(nil, os.Chmod(dir, 0o755))
	binary := filepath.Join(dir, "other")
	must[any](t)(nil, os.WriteFile(binary, must[[]byte](t)(os.ReadFile(os.Args[0])), 0o755))
	p := start(t, binary, role, socketEnv+"="+socket)
	p.Dir = "/"
	p.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	return p
}

// playStranger talks to a socket as another user, and tells what it hears.
func playStranger() error {
	c, err := net.Dial("unix", os.Getenv(socketEnv))
	if err != nil {
		return err
	}
	// The owner may hang up before it is told anything.
	_, _ = c.Write(identity{"s", "me", 1}.line())
	answer, _ := io.ReadAll(c)
	fmt.Printf("heard %q\n", answer)
	return nil
}

// playStrangeOwner serves at a socket as another user.
func playStrangeOwner() error {
	l, err := net.Listen("unix", os.Getenv(socketEnv))
	if err != nil {
		return err
	}
	if err := os.Chmod(os.Getenv(socketEnv), 0o666); err != nil {
		return err
	}
	fmt.Println("serving")
	c, err := l.Accept()
	if err != nil {
		return err
	}
	_, _ = c.Write(identity{"s", "me", 1}.line())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// The system says who is at the other end, whatever the folder lets through.
func TestStrangers(t *testing.T) {
	folder := socketFolder(t)
	socket := filepath.Join(folder, "0123456789abcdef")
	s := must[*Server](t)(Serve(t.Context(), Options{Path: socket, OwnerID: "me", Fence: 1, SessionID: "s"}))
	defer s.Close()
	must[*Client](t)(Dial(t.Context(), store.Lease{OwnerID: "me", Fence: 1, Socket: socket}, DialOptions{SessionID: "s"}))
	must[any](t)(nil, os.Chmod(folder, 0o755))
	must[any](t)(nil, os.Chmod(socket, 0o666))
	asNobody(t, "stranger", socket).run(t).says(t, `heard ""`)

	open := socketFolder(t)
	must[any](t)(nil, os.Chmod(open, fs.ModeSticky|0o777))
	lease := store.Lease{OwnerID: "me", Fence: 1, Socket: filepath.Join(open, "0123456789abcdef")}
	p := asNobody(t, "strange owner", lease.Socket).run(t)
	p.says(t, "serving")
	_, err := Dial(t.Context(), lease, DialOptions{SessionID: "s"})
	wantIs(t, err, ErrGone)
	if !strings.Contains(err.Error(), "belongs to user 65534") {
		t.Errorf("error %v", err)
	}
}
