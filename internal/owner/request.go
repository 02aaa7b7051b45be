package owner

import (
	"context"
	"encoding/json"
	"net"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/store"
)

// The requests (D25).
const (
	opAbort        = "abort"
	opSteer        = "steer"
	opFollowUp     = "follow-up"
	opNextRun      = "next-run"
	opCancelQueued = "cancel-queued"
	opAppend       = "append"
	opName         = "name"
	opLabel        = "label"
	opValue        = "value"
	opLaneSet      = "lane set"
	opUsageRecord  = "usage record"
	opWait         = "wait"
	opWatch        = "watch"
	opInspect      = "inspect"
)

// request is one line of a client. Its members beyond id and op are the op's.
type request struct {
	fields
	id   json.RawMessage
	op   string
	conn *net.UnixConn
}

func parseRequest(l line) (request, error) {
	r := request{id: json.RawMessage("null")}
	if l.err != nil {
		return r, malformed("%v", l.err)
	}
	if at := rawjson.ValidUTF8(l.text); at >= 0 {
		return r, malformed("the request is not UTF-8: byte %d", at)
	}
	var err error
	if r.fields, err = parseFields(l.text); err != nil {
		return r, malformed("the request is no JSON object: %v", err)
	}
	if id := r.raw("id"); rawjson.KindOf(id) == rawjson.Number || rawjson.KindOf(id) == rawjson.String {
		r.id = id
	}
	r.op, err = r.text("op")
	return r, err
}

// answer carries out one request. An error ends the connection.
func (s *Server) answer(ctx context.Context, c *net.UnixConn, l line) error {
	r, err := parseRequest(l)
	r.conn = c
	var result []byte
	if err == nil {
		err = s.guard(func() (err error) {
			result, err = s.perform(ctx, r)
			return err
		})
	}
	o := newObject()
	o.raw("id", r.id)
	o.bool("ok", err == nil)
	if err == nil {
		o.raw("result", result)
	} else {
		o.raw("error", encodeError(err))
	}
	return r.send(o)
}

// guard keeps a defect behind a request from ending the process: the session is
// faulted by it instead (spec §4.8).
func (s *Server) guard(work func() error) error {
	if s.o.Harness == nil {
		return work() // it refuses, and nothing else
	}
	return s.o.Harness.Session().Guard(work)
}

func (r request) send(o *object) error {
	text, err := asLine(o.end())
	if err != nil {
		return err
	}
	_, err = r.conn.Write(text)
	return err
}

func (s *Server) perform(ctx context.Context, r request) ([]byte, error) {
	if s.o.Harness == nil {
		return nil, &RemoteError{Code: "lease_held", Message: "the owner is busy with " + s.o.Command, Details: one("command", s.o.Command)}
	}
	if s.ctx.Err() != nil || !s.work.begin() {
		return nil, store.ErrClosed
	}
	if r.op == opWatch {
		// Nothing is left to do for somebody who looks on.
		s.work.end()
		return nil, s.watch(ctx, r)
	}
	defer s.work.end()
	switch r.op {
	case opAbort:
		return s.abort(ctx, r)
	case opSteer, opFollowUp, opNextRun:
		return s.enqueue(ctx, r)
	case opCancelQueued:
		return s.cancelQueued(ctx, r)
	case opAppend:
		return s.append(ctx, r)
	case opName:
		return s.name(ctx, r)
	case opLabel:
		return s.label(ctx, r)
	case opValue:
		return s.value(ctx, r)
	case opLaneSet:
		return s.configure(ctx, r)
	case opUsageRecord:
		return s.recordUsage(ctx, r)
	case opWait:
		return s.wait(ctx, r)
	case opInspect:
		return s.inspect(ctx, r)
	}
	return nil, &RemoteError{Code: "unsupported", Message: "the owner does not know the request " + string(rawjson.Quote(r.op))}
}

// lane is the lane that the request is for, main when it names none.
func (s *Server) lane(r request) (*engine.Lane, error) {
	name, err := r.text("lane")
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = store.MainLane
	}
	return s.o.Harness.Lane(name)
}

// lanes are the one lane that the request names, or all.
func (s *Server) lanes(r request) ([]*engine.Lane, error) {
	if r.raw("lane") == nil {
		return s.o.Harness.Lanes(), nil
	}
	l, err := s.lane(r)
	return []*engine.Lane{l}, err
}

// mintedID is an id that the client has minted, so that it can repeat the
// request (D25).
func (r request) mintedID(name string) (string, error) {
	id, err := r.text(name)
	if err != nil {
		return "", err
	}
	if _, err := store.IDTime(id); err != nil {
		return "", malformed("%s: %v", name, err)
	}
	return id, nil
}
