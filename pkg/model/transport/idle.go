package transport

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// IdleError is a server that sent nothing for too long.
type IdleError struct{ After time.Duration }

func (e *IdleError) Error() string {
	return fmt.Sprintf("the server sent nothing for %v: timed out", e.After)
}

// Timeout marks the error as one of time, as net.Error does.
func (e *IdleError) Timeout() bool { return true }

// Temporary is part of net.Error.
func (e *IdleError) Temporary() bool { return true }

// patient gives up a request when the server sends nothing for idle.
type patient struct {
	next http.RoundTripper
	idle time.Duration
}

func (p *patient) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	w := &watch{ctx: ctx, cancel: cancel, idle: p.idle}
	w.timer = time.AfterFunc(p.idle, w.expire)
	resp, err := p.next.RoundTrip(req.WithContext(ctx))
	w.timer.Stop()
	if err != nil {
		err = w.cause(err)
		cancel(nil)
		return nil, err
	}
	resp.Body = &watched{ReadCloser: resp.Body, watch: w}
	return resp, nil
}

// watch cancels a request at which nothing moves.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   time.Duration
	timer  *time.Timer
}

func (w *watch) expire() { w.cancel(&IdleError{After: w.idle}) }

// cause is err, or why the watch ended the request.
func (w *watch) cause(err error) error {
	if idle, ok := context.Cause(w.ctx).(*IdleError); ok && err != io.EOF {
		return idle
	}
	return err
}

// watched is a body whose reads are watched. What its reader does between them
// takes as long as it takes.
type watched struct {
	io.ReadCloser
	watch *watch
}

func (b *watched) Read(p []byte) (int, error) {
	b.watch.timer.Reset(b.watch.idle)
	n, err := b.ReadCloser.Read(p)
	b.watch.timer.Stop()
	if err != nil {
		err = b.watch.cause(err)
	}
	return n, err
}

func (b *watched) Close() error {
	err := b.ReadCloser.Close()
	b.watch.cancel(nil)
	return err
}
