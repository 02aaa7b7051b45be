package owner

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/store"
)

func TestReadLine(t *testing.T) {
	const limit = 20
	long := strings.Repeat("x", limit)
	input := "one\n\n" + long[:limit-1] + "\n" + long + "\n" + strings.Repeat(long, 9) + "\nlast\ntorn"
	for _, size := range []int{16, 17, 64 << 10} {
		var got []string
		r := bufio.NewReaderSize(iotest.OneByteReader(strings.NewReader(input)), size)
		for {
			text, err := readLine(r, limit)
			if errors.Is(err, errTooLong) {
				got = append(got, "too long")
				continue
			}
			if err != nil {
				wantIs(t, err, io.EOF)
				break
			}
			got = append(got, string(text))
		}
		wantEqual(t, fmt.Sprintf("lines through %d bytes", size), got, []string{"one", "", long[:limit-1], "too long", "too long", "last"})
	}
}

func TestAsLine(t *testing.T) {
	o := newObject()
	o.str("s", "a\nb\xed\xa0\xbd")
	o.raw("payload", []byte("{ \"a\" :\n\"x\\n\" ,\r\n\"a\":1.0 }"))
	o.raw("none", nil)
	o.optional("empty", "")
	o.bool("no", false)
	o.texts("all", []string{"x", "<"})
	got := must[[]byte](t)(asLine(o.end()))
	wantEqual(t, "line", string(got), `{"s":"a\nb\ud83d","payload":{"a":"x\n","a":1.0},"no":false,"all":["x","<"]}`+"\n")
	if _, err := asLine([]byte("{\n")); err == nil {
		t.Error("a line of broken JSON was written")
	}
}

// Every error is the same one on the other side.
func TestErrorsOverTheSocket(t *testing.T) {
	tests := []struct {
		err  error
		want error // nil: the same
	}{
		{&engine.LaneBusy{Lane: "m", OperationID: "o", Kind: "navigation"}, nil},
		{&engine.OperationMismatch{Lane: "m", Expected: "a", Current: "b", Last: "c"}, nil},
		{&engine.OperationMismatch{Lane: "m", Expected: "a"}, nil},
		{&engine.NoActiveRun{Lane: "m\xed\xa0\xbd"}, nil},
		{&engine.InvalidMessage{Reason: "no\nreason"}, nil},
		{&engine.InvalidMessage{Lane: "m", Reason: "none"}, nil},
		{&store.KindTaken{Address: store.Address{Namespace: "a", Key: "k"}, Kind: store.KindList}, nil},
		{&store.KindTaken{Address: store.Address{Namespace: "a"}, Kind: store.KindValue}, nil},
		{&engine.LaneNotFound{Lane: "x", Known: []string{"main", "y"}}, nil},
		{&store.UnknownTarget{ID: "e"}, nil},
		{&store.UnknownLane{Lane: "x"}, &engine.LaneNotFound{Lane: "x"}},
		{&store.TooLarge{Size: 9}, &engine.InvalidMessage{Reason: (&store.TooLarge{Size: 9}).Error()}},
		{store.ErrClosed, ErrClosing},
		{context.Canceled, ErrClosing},
		{usage("no"), nil},
		{&RemoteError{Code: "x", Message: "m", Details: json.RawMessage(`{"a":1}`)}, nil},
		{&store.Fault{Err: syscall.ENOSPC}, &RemoteError{Code: "io", Message: "commit: " + syscall.ENOSPC.Error()}},
		{&store.Fault{Err: errors.New("x")}, &RemoteError{Code: "fault", Message: "commit: x"}},
		{&store.Lost{Path: "p", Reason: "deleted"}, &RemoteError{Code: "io", Message: "p: deleted under its owner"}},
		{&fs.PathError{Op: "open", Path: "p", Err: fs.ErrPermission}, &RemoteError{Code: "io", Message: "open p: permission denied"}},
		{errors.New("odd"), &RemoteError{Code: "internal", Message: "odd"}},
	}
	for _, tt := range tests {
		if tt.want == nil {
			tt.want = tt.err
		}
		wantRefusal(t, decodeError(encodeError(fmt.Errorf("do: %w", tt.err))), wrapped(tt.want))
	}
	for _, broken := range []string{``, `5`, `{"code":5}`, `{"code":"closed","message":5}`} {
		if err := decodeError(json.RawMessage(broken)); err == nil {
			t.Errorf("no error made of %s", broken)
		}
	}
}

// wrapped is the error with the message of its whole chain, where it has one.
func wrapped(err error) error {
	var remote *RemoteError
	if errors.As(err, &remote) {
		return &RemoteError{Code: remote.Code, Message: "do: " + remote.Message, Details: remote.Details}
	}
	return err
}
