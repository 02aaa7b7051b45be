package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// childEnv makes a process of this test binary run one of children instead of
// the tests.
const childEnv = "DROVER_SQLITE_TEST_CHILD"

// children are what another process does in a test; they talk by lines.
var children = map[string]func(args []string) error{
	"hold":     childHold,
	"refused":  childRefused,
	"append":   childAppend,
	"frozen":   childFrozen,
	"compact":  childCompact,
	"exchange": childExchange,
	"move":     childMove,
	"migrate":  childMigrate,
	"full":     childFullCompact,
	"view":     childView,
	"cramped":  childCramped,
}

func TestMain(m *testing.M) {
	if name := os.Getenv(childEnv); name != "" {
		if err := children[name](os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child is another process.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	err *strings.Builder
}

func startChild(t *testing.T, name string, args ...string) *child {
	t.Helper()
	return startCommand(t, exec.Command(os.Args[0], args...), name)
}

func startCommand(t *testing.T, cmd *exec.Cmd, name string) *child {
	t.Helper()
	c := &child{cmd: cmd, err: &strings.Builder{}}
	cmd.Env = append(os.Environ(), childEnv+"="+name)
	cmd.Stderr = c.err
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.in, c.out = in, bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return c
}

// line waits for the child's next line.
func (c *child) line(t *testing.T) string {
	t.Helper()
	s, err := c.out.ReadString('\n')
	if err != nil {
		_ = c.cmd.Wait()
		t.Fatalf("child: %v: %s", err, c.err)
	}
	return strings.TrimSuffix(s, "\n")
}

// kill ends the child as kill -9 does.
func (c *child) kill(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait() // the signal is the error
}

var ctx = context.Background()

func header(id string) store.Header {
	return store.Header{ID: id, StorageVersion: store.StorageVersion, CreatedAt: 1_700_000_000_000, Generation: 1}
}

// newSession builds an empty session and returns its path.
func newSession(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s1.db")
	build(t, path, store.NewSnapshot(header("s1"), nil))
	return path
}

func build(t testing.TB, path string, snap *store.Snapshot) {
	t.Helper()
	if err := (Driver{}).Build(ctx, path, snap, store.BuildOptions{NoSync: true}); err != nil {
		t.Fatalf("build: %v", err)
	}
}

func open(t testing.TB, path string, o store.OpenOptions) *backend {
	t.Helper()
	b, err := openOwner(ctx, path, o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func mustClose(t testing.TB, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

func commit(t testing.TB, b store.Backend, writes ...store.Write) store.CommitResult {
	t.Helper()
	res, err := b.Commit(ctx, writes)
	if err != nil {
		t.Fatalf("commit: %v", err)
	}
	return res
}

func userEntry(id, parent string) store.Write {
	m := message.Message(`{"role":"user","content":"` + id + `","timestamp":1}`)
	return store.InsertEntry(store.MessageEntry(id, parent, m))
}

// marks is a list that tests append to, to see what survived.
var marks = store.NewList[string]("app.marks", "")

func readMarks(t testing.TB, q store.Queries) []string {
	t.Helper()
	els, err := store.ReadList(ctx, q, marks, store.ListQuery{})
	if err != nil {
		t.Fatalf("read marks: %v", err)
	}
	out := make([]string, len(els))
	for i, el := range els {
		out[i] = el.Value
	}
	return out
}

// sql runs a statement as another program would, on a connection of its own.
func foreign(t testing.TB, path, script string) {
	t.Helper()
	h, err := openHandle(path, dsnOwner)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.run(script); err != nil {
		t.Fatal(err)
	}
	mustClose(t, closer(h.close))
}

type closer func() error

func (f closer) Close() error { return f() }

// ask reads one row through an own connection.
func ask(t testing.TB, path, query string, dest ...any) {
	t.Helper()
	h, err := openHandle(path, dsnReader)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	if ok, err := h.row(query, nil, dest...); err != nil || !ok {
		t.Fatalf("%s: %v, %v", query, ok, err)
	}
}
