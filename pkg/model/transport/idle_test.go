package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// slowServer answers after a while, with pieces that each take a while.
type slowServer struct {
	head   time.Duration
	pieces []time.Duration
}

func (s *slowServer) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := sleep(req.Context(), s.head); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: 200, Body: &slowBody{req.Context(), s.pieces}}, nil
}

type slowBody struct {
	ctx    context.Context
	pieces []time.Duration
}

func (b *slowBody) Read(p []byte) (int, error) {
	if len(b.pieces) == 0 {
		return 0, io.EOF
	}
	if err := sleep(b.ctx, b.pieces[0]); err != nil {
		return 0, err
	}
	b.pieces = b.pieces[1:]
	return copy(p, "x"), nil
}

func (b *slowBody) Close() error { return nil }

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// read asks a server and reads its answer, with a pause between reads.
func read(ctx context.Context, s *slowServer, pause time.Duration) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://acme.test", nil)
	if err != nil {
		return 0, err
	}
	resp, err := (&patient{next: s, idle: time.Minute}).RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	for n := 0; ; n++ {
		_, err := resp.Body.Read(make([]byte, 10))
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		time.Sleep(pause)
	}
}

func TestIdle(t *testing.T) {
	const long, short = 61 * time.Second, 59 * time.Second
	tests := []struct {
		name   string
		server slowServer
		pause  time.Duration
		want   int // reads that got something
		idle   bool
	}{
		{"never for too long", slowServer{short, []time.Duration{short, short, short}}, 0, 3, false},
		{"a consumer that takes its time", slowServer{short, []time.Duration{short, short}}, time.Hour, 2, false},
		{"before the headers", slowServer{head: long}, 0, 0, true},
		{"before the first byte", slowServer{0, []time.Duration{long}}, 0, 0, true},
		{"in the middle", slowServer{0, []time.Duration{short, long}}, 0, 1, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, err := read(t.Context(), &tt.server, tt.pause)
				var timeout net.Error
				if n != tt.want || errors.As(err, &timeout) != tt.idle || tt.idle && !timeout.Timeout() || !tt.idle && err != nil {
					t.Errorf("%d reads, %v", n, err)
				}
			})
		})
	}
}

// TestCancelIsNoIdling: a request that its caller ends fails as cancelled.
func TestCancelIsNoIdling(t *testing.T) {
	for _, s := range []slowServer{{head: time.Hour}, {0, []time.Duration{time.Hour}}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := read(ctx, &s, 0); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("err = %v", err)
			}
		})
	}
}
