package modeltest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model/transport"
)

// checkFailure checks an answer that is an error of that class.
func checkFailure(t *testing.T, m message.Message, status int, classes ...string) {
	t.Helper()
	e := message.ProviderError(m)
	if m.StopReason() != message.StopError || !e.Known || e.Status != status || !slices.Contains(classes, e.Class) {
		t.Errorf("want status %d and a class of %v: %s", status, classes, m)
		return
	}
	transient := []string{
		message.ClassRateLimit, message.ClassOverloaded, message.ClassServer, message.ClassTimeout, message.ClassNetwork, message.ClassRetryable,
	}
	if message.IsRetryable(m) != slices.Contains(transient, e.Class) || message.IsOverflow(m, 200_000, 4321) != (e.Class == message.ClassOverflow) {
		t.Errorf("classification of %s", m)
	}
	if !strings.Contains(m.ErrorMessage(), providerName) {
		t.Errorf("the message does not say who: %s", m.ErrorMessage())
	}
}

func testStatuses(t *testing.T, k Kit) {
	for _, tt := range []struct {
		status int
		text   string
		class  []string
	}{
		{400, "max_tokens is too large", []string{message.ClassInvalidRequest}},
		{401, "no such key " + key, []string{message.ClassAuth}},
		{402, "please pay", []string{message.ClassBilling}},
		{403, "not in your country", []string{message.ClassPermission}},
		{404, "no such model", []string{message.ClassInvalidRequest}},
		{408, "too slow", []string{message.ClassTimeout}},
		{413, "the request is too large", []string{message.ClassOverflow}},
		{429, "slow down", []string{message.ClassRateLimit}},
		{500, "something broke", []string{message.ClassServer}},
		{502, "bad gateway", []string{message.ClassServer}},
		{503, "not now", []string{message.ClassServer, message.ClassOverloaded}},
		{504, "gateway timeout", []string{message.ClassTimeout, message.ClassServer}},
		{529, "overloaded", []string{message.ClassOverloaded}},
	} {
		for name, body := range map[string]string{"own": k.Refuse(tt.status, tt.text), "html": "<html><h1>" + tt.text + "</h1></html>"} {
			t.Run(fmt.Sprintf("%d %s", tt.status, name), func(t *testing.T) {
				w := newWorld(t, k)
				w.will(refuses(tt.status, nil, body))
				m := w.ask(t.Context(), request())
				checkFailure(t, m, tt.status, tt.class...)
				said, _, _ := strings.Cut(tt.text, key)
				if text := m.ErrorMessage(); !strings.Contains(text, said) || !strings.Contains(text, fmt.Sprint(tt.status)) {
					t.Errorf("message %q", text)
				}
			})
		}
	}
}

func testRetryAfter(t *testing.T, k Kit) {
	for _, tt := range []struct {
		header map[string]string
		want   int64
	}{
		{map[string]string{"Retry-After": "7"}, 7000},
		{map[string]string{"Retry-After": "Fri, 13 Nov 2026 10:01:30 GMT", "Date": "Fri, 13 Nov 2026 10:00:00 GMT"}, 90_000},
		{map[string]string{"Retry-After": "7", "Retry-After-Ms": "1500"}, 1500},
		{nil, 0},
	} {
		for _, status := range []int{429, 503} {
			w := newWorld(t, k)
			w.will(refuses(status, tt.header, k.Refuse(status, "later")))
			if got := message.ProviderError(w.ask(t.Context(), request())); got.RetryAfterMs != tt.want {
				t.Errorf("%d with %v: %+v, want %d ms", status, tt.header, got, tt.want)
			}
		}
	}
}

func testOverflow(t *testing.T, k Kit) {
	for _, text := range k.Overflows {
		w := newWorld(t, k)
		w.will(refuses(400, nil, k.Refuse(400, text)))
		checkFailure(t, w.ask(t.Context(), request()), 400, message.ClassOverflow)
	}
	w := newWorld(t, k)
	w.will(refuses(413, nil, ""))
	checkFailure(t, w.ask(t.Context(), request()), 413, message.ClassOverflow)
}

// testFailsInTheStream: an error may come after status 200, with or without
// content before it.
func testFailsInTheStream(t *testing.T, k Kit) {
	for class, text := range map[string]string{
		message.ClassOverloaded: "Overloaded", message.ClassRateLimit: "slow down", message.ClassServer: "it broke",
		message.ClassOverflow: "prompt is too long: 9 tokens > 8 maximum",
	} {
		whole := k.Render(plain())
		for _, n := range []int{0, len(whole) / 2} {
			w := newWorld(t, k)
			w.will(sends(append(slices.Clone(whole[:n]), k.Fail(class, text))...))
			m := w.ask(t.Context(), request())
			checkFailure(t, m, message.ProviderError(m).Status, class)
			if !strings.Contains(m.ErrorMessage(), text) {
				t.Errorf("message %q", m.ErrorMessage())
			}
		}
	}
}

// testCut: a stream that ends before the answer does is an error that keeps what
// came, wherever it was cut and however the connection ended.
func testCut(t *testing.T, k Kit) {
	s := full(k)
	events := k.Render(s)
	whole := newWorld(t, k).sayTo(s, thinkingRequest())
	hang := func(rw http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }
	ended, had := 0, 0
	for n := range len(events) {
		for _, after := range []http.HandlerFunc{nil, hang} {
			w := newWorld(t, k)
			w.will(func(rw http.ResponseWriter, r *http.Request) {
				sends(events[:n]...)(rw, r)
				if after != nil {
					after(rw, r)
				}
			})
			m := w.ask(t.Context(), thinkingRequest())
			if m.StopReason() == whole.StopReason() {
				ended++
				if diff := cmp.Diff(blocks(t, k, whole), blocks(t, k, m)); diff != "" {
					t.Errorf("done after %d of %d events: %s", n, len(events), diff)
				}
				continue
			}
			checkFailure(t, m, 0, message.ClassNetwork)
			if content(m) != "[]" {
				had++
			}
		}
	}
	if had == 0 {
		t.Error("no cut answer kept what came")
	}
	// The end may be said some events before the last one: usage follows it.
	if ended > 6 {
		t.Errorf("%d cut answers are done", ended)
	}
}

// testStalled: a server that goes silent is given up.
func testStalled(t *testing.T, k Kit) {
	events := k.Render(plain())
	for _, n := range []int{-1, 0, len(events) / 2} {
		w := newWorldWith(t, k, transport.Options{Idle: idle})
		w.will(func(rw http.ResponseWriter, r *http.Request) {
			if n >= 0 {
				sends(events[:n]...)(rw, r)
				write(rw)
				_ = http.NewResponseController(rw).Flush()
			}
			<-r.Context().Done()
		})
		checkFailure(t, w.ask(t.Context(), request()), 0, message.ClassTimeout)
	}
}

func testUnreachable(t *testing.T, k Kit) {
	w := newWorld(t, k)
	w.server.Close()
	m := w.ask(t.Context(), request())
	checkFailure(t, m, 0, message.ClassNetwork)
	if !strings.Contains(m.ErrorMessage(), "refused") || !strings.Contains(m.ErrorMessage(), strings.TrimPrefix(w.server.URL, "http://")) {
		t.Errorf("message %q", m.ErrorMessage())
	}
}

// testNoEvents: what is no stream of events is an error that says what it is.
func testNoEvents(t *testing.T, k Kit) {
	for name, answer := range map[string]http.HandlerFunc{
		"a page": func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "text/html")
			write(rw, "<html>Welcome</html>")
		},
		"nothing":    func(rw http.ResponseWriter, _ *http.Request) {},
		"no JSON":    sends("data: {\"id\n\n"),
		"JSON of no": sends("data: [1,2]\n\n", "data: \"x\"\n\n"),
		"a redirect": func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, "https://elsewhere.test/login", http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, k)
			w.will(answer)
			m := w.ask(t.Context(), request())
			if m.StopReason() != message.StopError || m.ErrorMessage() == "" || !message.ProviderError(m).Known {
				t.Errorf("the answer is %s", m)
			}
			if name == "a redirect" && (!strings.Contains(m.ErrorMessage(), "elsewhere.test") || message.IsRetryable(m)) {
				t.Errorf("the redirect is told as %q", m.ErrorMessage())
			}
			if name == "a page" && message.IsRetryable(m) {
				t.Errorf("the page is asked for again: %s", m)
			}
		})
	}
}

// testOddEvents: comments, unknown events, other line ends and any cut into
// packets do not change the answer.
func testOddEvents(t *testing.T, k Kit) {
	s := full(k)
	text := strings.Join(k.Render(s), ": a comment\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n")
	for name, t2 := range map[string]string{"comments": text, "line ends": strings.ReplaceAll(text, "\n", "\r\n")} {
		w := newWorld(t, k)
		packets := []string{t2}
		if name == "comments" {
			packets = nil
			for rest := t2; rest != ""; rest = rest[min(7, len(rest)):] {
				packets = append(packets, rest[:min(7, len(rest))])
			}
		}
		w.will(sends(packets...))
		checkAnswer(t, k, s, w.ask(t.Context(), thinkingRequest()))
	}
}

func testAborted(t *testing.T, k Kit) {
	check := func(w *world, ctx context.Context) message.Message {
		t.Helper()
		m := w.ask(ctx, request())
		if m.StopReason() != message.StopAborted {
			t.Errorf("an aborted request ends as %s", m)
		}
		return m
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := newWorld(t, k)
	check(w, ctx)
	if n := w.requests(); n != 0 {
		t.Errorf("%d requests after the abort", n)
	}

	ctx, cancel = context.WithCancel(t.Context())
	w = newWorld(t, k)
	w.will(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	check(w, ctx)

	events := k.Render(plain())
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	w = newWorld(t, k)
	w.will(func(rw http.ResponseWriter, r *http.Request) {
		sends(events[:len(events)-1]...)(rw, r)
		<-r.Context().Done()
	})
	var last message.StreamEvent
	for ev := range w.model.Stream(ctx, request()) {
		if last = ev; ev.Type == message.EventTextDelta {
			cancel()
		}
	}
	if last.Reason != message.StopAborted && last.Reason != message.StopStop {
		t.Errorf("an abort in the middle ends with %s %s", last.Type, last.Final())
	}
	if !strings.Contains(content(last.Final()), "Hello") {
		t.Errorf("the abort lost what came: %s", last.Final())
	}
}

// testConsumerStops: a consumer that stops ends the request.
func testConsumerStops(t *testing.T, k Kit) {
	w := newWorld(t, k)
	gone := make(chan struct{})
	events := k.Render(plain())
	w.will(func(rw http.ResponseWriter, r *http.Request) {
		sends(events[:len(events)/2+1]...)(rw, r)
		<-r.Context().Done()
		close(gone)
	})
	for range w.model.Stream(t.Context(), request()) {
		break
	}
	<-gone
}

// testNoRetries: attempts are the engine's to make.
func testNoRetries(t *testing.T, k Kit) {
	for _, status := range []int{408, 409, 429, 500, 529} {
		w := newWorld(t, k)
		w.will(refuses(status, map[string]string{"Retry-After": "0", "X-Should-Retry": "true"}, k.Refuse(status, "again")))
		w.ask(t.Context(), request())
		if n := w.requests(); n != 1 {
			t.Errorf("%d requests after status %d", n, status)
		}
	}
}
