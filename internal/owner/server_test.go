package owner

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// Whatever a client sends, it is answered, and the next request is served.
func TestMalformedRequests(t *testing.T) {
	h := newHouseOn(t, enginetest.Say("yes"), terms{peer: peerUID, line: 2000, backlog: maxBacklog})
	bad := `{"id":null,"ok":false,"error":{"code":"invalid_request","message":"`
	tests := []struct{ name, send, want string }{
		{"empty", ``, bad + `the request is no JSON object: unexpected end of text"}}`},
		{"no JSON", `hello`, bad + `the request is no JSON object: expected an object"}}`},
		{"no object", `[1]`, bad + `the request is no JSON object: expected an object"}}`},
		{"torn", `{"id":1,"op":"ste`, bad + `the request is no JSON object: unexpected end of text"}}`},
		{"two", `{"id":1} {"id":2}`, bad + `the request is no JSON object: unexpected text after the value"}}`},
		{"no UTF-8", "{\"id\":1,\"op\":\"\xff\"}", bad + `the request is not UTF-8: byte 14"}}`},
		{"too long", `{"id":1,"op":"steer","text":"` + strings.Repeat("x", 2000) + `"}`, bad + `the line is too long"}}`},
		{"much too long", strings.Repeat("x", 1<<20), bad + `the line is too long"}}`},
		{"op of another type", `{"id":1,"op":5}`, `{"id":1,"ok":false,"error":{"code":"invalid_request","message":"op is no string"}}`},
		{"no op", `{"id":"é"}`, `{"id":"é","ok":false,"error":{"code":"unsupported","message":"the owner does not know the request \"\""}}`},
		{"unknown op", `{"id":1,"op":"prompt"}`, `{"id":1,"ok":false,"error":{"code":"unsupported","message":"the owner does not know the request \"prompt\""}}`},
		{"id of another type", `{"id":{},"op":"wait","lane":5}`, `{"id":null,"ok":false,"error":{"code":"invalid_request","message":"lane is no string"}}`},
		{"no minted id", `{"id":1,"op":"steer","text":"x"}`, `{"id":1,"ok":false,"error":{"code":"invalid_request","message":"entryId: id \"\" is no UUID"}}`},
		{"images", `{"id":1,"op":"steer","entryId":"` + nowhere + `","images":{}}`, `{"id":1,"ok":false,"error":{"code":"invalid_request","message":"images is no list"}}`},
		{"model", `{"id":1,"op":"lane set","model":{"provider":"x"}}`, `{"id":1,"ok":false,"error":{"code":"invalid_request","message":"model needs provider and modelId"}}`},
		{"tools", `{"id":1,"op":"lane set","activeToolNames":[1]}`, `{"id":1,"ok":false,"error":{"code":"invalid_request","message":"activeToolNames is no list of strings"}}`},
		{"value action", `{"id":1,"op":"value","namespace":"a","action":"eat"}`, `{"id":1,"ok":false,"error":{"code":"invalid_request","message":"a value has no action \"eat\""}}`},
		{"a good one", `{"id":1.5e3,"op":"cancel-queued","entryId":"x"}`, `{"id":1.5e3,"ok":true,"result":{"entryId":"x","kind":"not_found"}}`},
	}
	c := h.raw(t)
	r := bufio.NewReader(c)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			must[int](t)(c.Write([]byte(tt.send + "\n")))
			got := must[string](t)(r.ReadString('\n'))
			wantEqual(t, "answer", got, tt.want+"\n")
		})
	}
	// Requests that were sent together are answered in turn.
	must[int](t)(c.Write([]byte(`{"id":1,"op":"name","name":"a"}` + "\n" + `{"id":2,"op":"name","name":"b"}` + "\n")))
	for _, id := range []string{"1", "2"} {
		wantEqual(t, "answer", must[string](t)(r.ReadString('\n')), `{"id":`+id+`,"ok":true,"result":{}}`+"\n")
	}
}

// A client that means another owner, or another session, is left alone, and so
// is one that never says what it means.
func TestAnotherOwner(t *testing.T) {
	h := newHouse(t, enginetest.Say("yes"))
	options := DialOptions{SessionID: "world"}
	for name, change := range map[string]func(*store.Lease, *DialOptions){
		"fence":   func(l *store.Lease, _ *DialOptions) { l.Fence++ },
		"owner":   func(l *store.Lease, _ *DialOptions) { l.OwnerID = "you" },
		"session": func(_ *store.Lease, o *DialOptions) { o.SessionID = "other" },
		"socket":  func(l *store.Lease, _ *DialOptions) { l.Socket += "x" },
		"none":    func(l *store.Lease, _ *DialOptions) { l.Socket = "" },
	} {
		lease, o := h.lease, options
		change(&lease, &o)
		_, err := Dial(t.Context(), lease, o)
		if !errors.Is(err, ErrGone) {
			t.Errorf("another %s: %v, want ErrGone", name, err)
		}
	}
	for _, hello := range []string{"hello\n", "{}\n", "\n", ""} {
		c := must[*net.UnixConn](t)(dial(t.Context(), h.lease.Socket))
		must[int](t)(c.Write([]byte(hello)))
		must[any](t)(nil, c.CloseWrite())
		answer := make([]byte, 1)
		if n, err := c.Read(answer); n != 0 || err == nil {
			t.Errorf("hello %q is answered %q", hello, answer)
		}
		_ = c.Close()
	}
	h.dial(t) // it still serves
}

// What looks like an owner must say the right thing, and in time.
func TestImpostors(t *testing.T) {
	want := identity{"world", "me", 7}
	for name, answer := range map[string]string{
		"another owner": string(identity{"world", "me", 8}.line()),
		"nonsense":      "hello\n",
		"half a line":   strings.TrimSuffix(string(want.line()), "\n"),
		"silence":       "",
	} {
		path := socketFolder(t) + "/0123456789abcdef"
		l := must[*net.UnixListener](t)(net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}))
		over := make(chan struct{})
		go func() {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(answer))
			if answer != "" {
				_ = c.CloseWrite()
			}
			<-over
			_ = c.Close()
		}()
		o := DialOptions{SessionID: "world", Timeout: 50 * time.Millisecond}
		_, err := Dial(t.Context(), store.Lease{OwnerID: "me", Fence: 7, Socket: path}, o)
		if !errors.Is(err, ErrGone) {
			t.Errorf("%s: %v, want ErrGone", name, err)
		}
		close(over)
		_ = l.Close()
	}
}

func TestDialEndsWithItsContext(t *testing.T) {
	path := socketFolder(t) + "/0123456789abcdef"
	l := must[*net.UnixListener](t)(net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}))
	defer l.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	go func() {
		if c, err := l.AcceptUnix(); err == nil {
			defer c.Close()
		}
		cancel(why)
	}()
	_, err := Dial(ctx, store.Lease{OwnerID: "me", Fence: 7, Socket: path}, DialOptions{SessionID: "world"})
	if !errors.Is(err, why) && !errors.Is(err, ErrGone) {
		t.Errorf("error %v", err)
	}
}

func TestAnotherUser(t *testing.T) {
	h := newHouseOn(t, enginetest.Say("yes"), terms{
		peer: func(*net.UnixConn) (int, error) { return os.Getuid() + 1, nil }, line: maxLine, backlog: maxBacklog,
	})
	_, err := Dial(t.Context(), h.lease, DialOptions{SessionID: "world"})
	wantIs(t, err, ErrGone)
}

// An owner without an engine says what it does instead.
func TestOccupied(t *testing.T) {
	lease := store.Lease{OwnerID: "me", Fence: 7, Host: "here", PID: 12, Socket: socketFolder(t) + "/0123456789abcdef"}
	s := must[*Server](t)(Serve(t.Context(), Options{Path: lease.Socket, OwnerID: "me", Fence: 7, SessionID: "world", Command: "rewrite"}))
	defer s.Close()
	c := must[*Client](t)(Dial(t.Context(), lease, DialOptions{SessionID: "world", Path: "world.db"}))
	defer c.Close()
	_, waiting := c.Wait(t.Context(), "")
	for _, err := range []error{c.SetName(t.Context(), "x"), c.Watch(t.Context(), "", nil), waiting} {
		var occupied *Occupied
		var held *store.Held
		if !errors.As(err, &occupied) || !errors.As(err, &held) {
			t.Fatalf("error %v, want Occupied and Held", err)
		}
		wantEqual(t, "refusal", *occupied, Occupied{Held: store.Held{Path: "world.db", Lease: lease}, Command: "rewrite"})
	}
}

// Everybody who watches gets the snapshot and then what a listener in the process
// gets, event for event (spec §5.4, D41).
func TestWatchOverTheSocket(t *testing.T) {
	h := newHouse(t, enginetest.Say("one ", "two"))
	h.Prompt("before")
	var mu sync.Mutex
	var want []string
	defer h.Harness.On(func(e engine.Event) {
		mu.Lock()
		defer mu.Unlock()
		b, _ := e.AppendJSON(nil)
		want = append(want, string(b))
	})()
	var watching sync.WaitGroup
	seen := make([][]string, 4)
	snapshots := make([]string, 4)
	began := make(chan struct{}, 4)
	for i, lane := range []string{"", "main", "", "main"} {
		c := h.dial(t)
		watching.Go(func() {
			err := c.Watch(context.Background(), lane, func(s Sight) error {
				if s.Snapshot != nil {
					snapshots[i] = string(s.Snapshot)
					began <- struct{}{}
					return nil
				}
				seen[i] = append(seen[i], string(s.Event))
				return nil
			})
			if !errors.Is(err, ErrClosing) {
				t.Errorf("the watch ended with %v", err)
			}
		})
	}
	for range 4 {
		<-began
	}
	report := must[engine.LaneReport](t)(h.Lane.Report(t.Context(), true))
	lane := string(must[[]byte](t)(report.Snapshot.AppendJSON(nil)))
	session := must[*engine.SessionWatch](t)(h.Harness.WatchSession(t.Context()))
	session.Stop()
	whole := string(must[[]byte](t)(session.Snapshot.AppendJSON(nil)))
	wantEqual(t, "snapshots", snapshots, []string{whole, lane, whole, lane})
	h.Prompt("after")
	must[any](t)(nil, h.dial(t).SetName(t.Context(), "named"))
	must[any](t)(nil, h.server.Close())
	watching.Wait()
	for i := range seen {
		wantEqual(t, "events", seen[i], want)
	}
	if len(want) < 10 {
		t.Errorf("%d events only", len(want))
	}
}

// A watch ends when its client has had enough, and the client is used up.
func TestWatchIsGivenUp(t *testing.T) {
	h := newHouse(t, enginetest.Say("yes"))
	c := h.dial(t)
	enough := errors.New("enough")
	wantIs(t, c.Watch(t.Context(), "main", func(Sight) error { return enough }), enough)
	wantIs(t, c.SetName(t.Context(), "x"), enough)

	c = h.dial(t)
	ctx, cancel := context.WithCancel(t.Context())
	wantIs(t, c.Watch(ctx, "main", func(Sight) error { cancel(); return nil }), context.Canceled)
	wantIs(t, c.SetName(t.Context(), "x"), context.Canceled)

	c = h.dial(t)
	must[any](t)(nil, c.Close())
	wantIs(t, c.SetName(t.Context(), "x"), net.ErrClosed)
	wantRefusal(t, h.dial(t).Watch(t.Context(), "none", nil), &engine.LaneNotFound{Lane: "none", Known: []string{"main"}})
}

// A watcher that does not read never holds a run up; it is dropped when it is too
// far behind, and told so.
func TestSlowWatcher(t *testing.T) {
	chunks := make([]string, 8)
	for i := range chunks {
		chunks[i] = strings.Repeat("x", 20_000)
	}
	h := newHouseOn(t, enginetest.Say(chunks...), terms{peer: peerUID, line: maxLine, backlog: 100_000})
	c := h.raw(t)
	must[int](t)(c.Write([]byte(`{"id":1,"op":"watch"}` + "\n")))
	r := bufio.NewReader(c)
	if first := must[string](t)(r.ReadString('\n')); !strings.HasPrefix(first, `{"id":1,"snapshot":{`) {
		t.Fatalf("first line %s", first)
	}
	h.Prompt("go") // ends, though nobody reads
	last, lines := "", 0
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("after %d lines: %v", lines, err)
		}
		if last, lines = line, lines+1; !strings.HasPrefix(line, `{"id":1,"event":`) {
			break
		}
	}
	wantEqual(t, "last line", last, `{"id":1,"ok":false,"error":{"code":"slow_reader","message":"the watcher is too far behind"}}`+"\n")
	must[int](t)(c.Write([]byte(`{"id":2,"op":"name"}` + "\n")))
	wantEqual(t, "next answer", must[string](t)(r.ReadString('\n')), `{"id":2,"ok":true,"result":{}}`+"\n")
}

// A client's wait does not end between two passes of a process that means to go
// on, and not before its first.
func TestWaitForWhoMeansToDrive(t *testing.T) {
	h := newHouse(t, enginetest.Say("yes"))
	done := h.server.Driving("main")
	id := h.Accept("go")
	c := h.dial(t)
	waited := ask(func() ([]LaneStatus, error) { return c.Wait(context.Background(), "main") })
	h.Drive(engine.DriveOptions{OperationID: id, Deadline: 1}) // yields at once
	if len(waited) != 0 {
		t.Error("the wait ended between two passes")
	}
	h.Drive(engine.DriveOptions{OperationID: id})
	done()
	if got := waited.get(t); got[0].OperationID != "" || got[0].LastResult == nil {
		t.Errorf("the wait ended with %s", got[0].Raw)
	}

	defer h.server.Driving("main")()
	id = h.Accept("again")
	waited = ask(func() ([]LaneStatus, error) { return c.Wait(context.Background(), "") })
	h.untilBusy(t)
	must[any](t)(nil, h.server.Quiesce(t.Context())) // drives nothing more
	wantEqual(t, "open operation", waited.get(t)[0].OperationID, id)
}

// An owner stays until what it accepted has settled, and accepts nothing then.
func TestQuiesce(t *testing.T) {
	h := newHouse(t, enginetest.Reply{Hang: true})
	id, ended := h.hang(t)
	c := h.dial(t)
	waiter := h.dial(t)
	waited := ask(func() ([]LaneStatus, error) { return waiter.Wait(context.Background(), "") })
	h.untilBusy(t)
	quiet := make(chan error, 1)
	go func() { quiet <- h.server.Quiesce(context.Background()) }()
	must[AbortResult](t)(c.Abort(t.Context(), "", id, false))
	if err := <-quiet; err != nil {
		t.Fatal(err)
	}
	<-ended
	wantEqual(t, "idle", waited.get(t)[0].OperationID, "")
	wantEqual(t, "busy", h.server.Busy(), false)
	wantIs(t, c.SetName(t.Context(), "x"), ErrClosing)
	wantIs(t, c.Watch(t.Context(), "", nil), ErrClosing)
}

// Closing ends every conversation, leaves nothing running, and can be asked for
// in several ways.
func TestClose(t *testing.T) {
	for name, end := range map[string]func(*house, context.CancelFunc){
		"the server":  func(h *house, _ context.CancelFunc) { _ = h.server.Close() },
		"the context": func(_ *house, cancel context.CancelFunc) { cancel() },
		"the session": func(h *house, _ context.CancelFunc) { _ = h.Harness.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			h := newHouse(t, enginetest.Reply{Hang: true})
			must[any](t)(nil, h.server.Close())
			ctx, cancel := context.WithCancel(t.Context())
			h.server = must[*Server](t)(Serve(ctx, h.server.o))
			_, ended := h.hang(t)
			idle, silent := h.dial(t), must[*net.UnixConn](t)(dial(t.Context(), h.lease.Socket))
			waiter := h.dial(t)
			waiting := make(chan error, 1)
			go func() {
				_, err := waiter.Wait(context.Background(), "")
				waiting <- err
			}()
			h.untilBusy(t)
			end(h, cancel)
			// A session that closes first has a moment when nobody drives it.
			if err := <-waiting; err != nil || name != "the session" {
				wantIs(t, err, ErrClosing)
			}
			must[any](t)(nil, h.server.Close())
			must[any](t)(nil, h.Harness.Close())
			<-ended
			wantIs(t, idle.SetName(t.Context(), "x"), ErrGone)
			_, err := Dial(t.Context(), h.lease, DialOptions{SessionID: "world"})
			wantIs(t, err, ErrGone)
			_ = silent.Close()
			cancel()
			if _, err := os.Lstat(h.lease.Socket); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the socket: %v", err)
			}
			goleak.VerifyNone(t, before)
		})
	}
}

// A client that does not take its answers cannot keep an owner from closing.
func TestCloseDoesNotWaitForAStuckClient(t *testing.T) {
	h := newHouse(t, enginetest.Say(strings.Repeat("x", 400_000)))
	h.Prompt("go")
	c := h.raw(t)
	must[int](t)(c.Write([]byte(`{"id":1,"op":"inspect","snapshot":true}` + "\n")))
	one := make([]byte, 1)
	must[int](t)(c.Read(one)) // it has begun to answer
	must[any](t)(nil, h.server.Close())
}

// The answer of a request whose client went away is lost; the request itself is
// not, and its repeat finds it done (D25).
func TestRepeatOfALostAnswer(t *testing.T) {
	h := newHouse(t, enginetest.Say("yes"))
	id := h.dial(t).minted("")
	for range 20 {
		c := h.raw(t)
		must[int](t)(c.Write([]byte(`{"id":1,"op":"next-run","entryId":"` + id + `","text":"once"}` + "\n")))
		must[any](t)(nil, c.Close())
	}
	got := must[Placement](t)(h.dial(t).NextRun(t.Context(), "", engine.Queued{EntryID: id, Text: "once"}))
	wantEqual(t, "placement", got.Queued, true)
	must[any](t)(nil, h.server.Quiesce(t.Context()))
	wantEqual(t, "queue", h.queues(t).NextRun, []string{"once"})
}

// A write waits for a structural operation, as long as its client does; one that
// nobody drives is not waited for (D26).
func TestAppendDuringACompaction(t *testing.T) {
	h := newHouse(t, enginetest.Say("yes"))
	h.Prompt("a long story")
	h.Prompt("more of it")
	settings := h.Harness.Settings()
	settings.Compaction = op.CompactionSettings{Enabled: true, ReserveTokens: 100, KeepRecentTokens: 1}
	must[any](t)(nil, h.Harness.SetSettings(settings))
	h.Model.Reply = enginetest.Sequence(enginetest.Reply{Hang: true})
	a := must[engine.Admission](t)(h.Lane.AcceptCompaction(t.Context(), engine.CompactRequest{}))
	c := h.dial(t)
	note := func(name string) store.PendingEntry {
		return store.PendingEntry{Type: store.TypeCustom, CustomType: name}
	}
	_, err := c.Append(t.Context(), "", "", note("refused"))
	wantRefusal(t, err, &engine.LaneBusy{Lane: "main", OperationID: a.OperationID, Kind: "compaction"})

	go func() { _, _ = h.Lane.Drive(context.Background(), engine.DriveOptions{OperationID: a.OperationID}) }()
	<-h.Model.Hanging()
	impatient := h.raw(t)
	must[int](t)(impatient.Write([]byte(`{"id":1,"op":"append","entryId":"` + nowhere + `","type":"custom","customType":"given up"}` + "\n")))
	h.untilBusy(t)
	must[any](t)(nil, impatient.Close())
	patient := h.dial(t)
	landed := ask(func() (Placement, error) { return patient.Append(context.Background(), "", "", note("patient")) })
	must[AbortResult](t)(c.Abort(t.Context(), "", a.OperationID, false))
	wantEqual(t, "queued", landed.get(t).Queued, false)
	must[any](t)(nil, h.server.Quiesce(t.Context()))
	var notes []string
	for _, line := range h.transcript(t) {
		if name, is := strings.CutSuffix(line, " {}"); is {
			notes = append(notes, name)
		}
	}
	wantEqual(t, "notes", notes, []string{"patient"})
}
