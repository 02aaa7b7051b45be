package owner

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"time"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
)

// answerTime is how long an owner may take to say that it is there, unless the
// caller says otherwise.
const answerTime = 5 * time.Second

// DialOptions say which session a client means.
type DialOptions struct {
	SessionID string
	// Path of the session file, for messages.
	Path string
	// Timeout bounds the dialling; 0 means 5 s. A stopped owner is there, but
	// does not answer.
	Timeout time.Duration
}

// Client talks to the owner of one session, one request at a time: it is not safe
// for concurrent use. A request whose context ends closes the client.
type Client struct {
	conn   *net.UnixConn
	r      *bufio.Reader
	lease  store.Lease
	path   string
	ids    *store.IDs
	last   int64
	broken error
}

// Dial connects to the owner that a lease names. It fails with ErrGone when that
// owner is not there: dead, without a socket, of another user, or another owner
// than the lease says (D24). The caller then uses the file, which may turn out to
// be held all the same.
func Dial(ctx context.Context, lease store.Lease, o DialOptions) (*Client, error) {
	if lease.Socket == "" {
		return nil, gone(errors.New("it serves no socket"))
	}
	if o.Timeout == 0 {
		o.Timeout = answerTime
	}
	limit, cancel := context.WithTimeoutCause(ctx, o.Timeout, errors.New("it does not answer"))
	defer cancel()
	c, err := dial(limit, lease.Socket)
	if err == nil {
		client := &Client{conn: c, r: bufio.NewReaderSize(c, 64<<10), lease: lease, path: o.Path, ids: store.NewIDs(store.SystemNow, nil)}
		if err = client.greet(limit, identity{o.SessionID, lease.OwnerID, lease.Fence}); err == nil {
			return client, nil
		}
		_ = c.Close()
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, gone(err)
}

func gone(cause error) error { return fmt.Errorf("%w: %w", ErrGone, cause) }

func dial(ctx context.Context, path string) (*net.UnixConn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	c := conn.(*net.UnixConn)
	if err := sameUser(c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func sameUser(c *net.UnixConn) error {
	uid, err := peerUID(c)
	if err == nil && uid != os.Getuid() {
		err = fmt.Errorf("it belongs to user %d", uid)
	}
	return err
}

// greet says which owner the client means and wants the same said back.
func (c *Client) greet(ctx context.Context, want identity) error {
	defer c.bound(ctx)()
	_, err := c.conn.Write(want.line())
	if err != nil {
		return err
	}
	line, err := readLine(c.r, maxLine)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return err
	}
	if is, err := parseIdentity(line); err != nil || is != want {
		return errors.New("another owner answers")
	}
	return nil
}

// bound breaks off reading and writing when the context ends.
func (c *Client) bound(ctx context.Context) (free func()) {
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	return func() { stop() }
}

// Close ends the conversation; what waits for this client's sake is given up.
// One that a request broke off is closed already.
func (c *Client) Close() error {
	if c.broken != nil {
		return nil
	}
	c.broken = net.ErrClosed
	return c.conn.Close()
}

// call makes one request. each gets the lines before the answer.
func (c *Client) call(ctx context.Context, op string, fill func(*object) error, each func(fields) error) (fields, error) {
	if c.broken != nil {
		return nil, c.broken
	}
	c.last++
	o := newObject()
	o.int("id", c.last)
	o.str("op", op)
	if err := fill(o); err != nil {
		return nil, err
	}
	text, err := asLine(o.end())
	if err != nil {
		return nil, err
	}
	if len(text) > maxLine {
		return nil, &store.TooLarge{Size: int64(len(text))}
	}
	answer, err := c.exchange(ctx, text, each)
	if err != nil {
		c.broken = err
		_ = c.conn.Close()
		return nil, err
	}
	return c.result(answer)
}

// exchange sends a request and reads up to its answer. An error leaves the
// connection unusable.
func (c *Client) exchange(ctx context.Context, text []byte, each func(fields) error) (fields, error) {
	defer c.bound(ctx)()
	_, failed := c.conn.Write(text)
	for {
		// An owner that stopped reading may have said why.
		line, err := readLine(c.r, math.MaxInt)
		if err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, gone(errors.Join(failed, err))
		}
		f, err := parseFields(line)
		if err != nil || !c.answers(f) {
			return nil, gone(errors.New("it answers something else"))
		}
		if f["ok"] != nil {
			return f, nil
		}
		if each == nil {
			continue
		}
		if err := each(f); err != nil {
			return nil, err
		}
	}
}

// answers reports whether a line belongs to the request. One that the owner could
// not read has no id.
func (c *Client) answers(f fields) bool {
	id := string(f["id"])
	return id == string(rawjson.AppendInt(nil, c.last)) || id == "null" && string(f["ok"]) == "false"
}

func (c *Client) result(answer fields) (fields, error) {
	if !answer.bool("ok") {
		err := decodeError(answer["error"])
		var refused *RemoteError
		if errors.As(err, &refused) && refused.Code == "lease_held" {
			d, _ := parseFields(refused.Details)
			command, _ := d.text("command")
			err = &Occupied{Held: store.Held{Path: c.path, Lease: c.lease}, Command: command}
		}
		return nil, err
	}
	f, err := parseFields(answer["result"])
	if err != nil {
		return nil, gone(errors.New("it answers without a result"))
	}
	return f, nil
}

// compact makes a payload fit into a line.
func compact(raw json.RawMessage) (json.RawMessage, error) {
	if raw == nil {
		return nil, nil
	}
	return rawjson.Compact(nil, raw)
}
