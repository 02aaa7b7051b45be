package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// batchServer is a vendor with one account, whose message batches are of several
// sessions and say whose only once they have ended.
type batchServer struct {
	*httptest.Server
	mu       sync.Mutex
	batches  []*keptBatch
	dropped  []string
	ended    bool
	submits  func(w http.ResponseWriter, r *http.Request, take func()) // nil: takes and answers
	silent   chan struct{}                                             // polls and submissions that get no answer say so here
	pollLost bool                                                      // polls get no answer
}

type keptBatch struct{ id, key, made string }

func newBatchServer(t *testing.T) *batchServer {
	t.Helper()
	s := &batchServer{silent: make(chan struct{}, 10)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages/batches", s.submit)
	mux.HandleFunc("GET /v1/messages/batches", s.list)
	mux.HandleFunc("GET /v1/messages/batches/{id}", s.poll)
	mux.HandleFunc("GET /v1/messages/batches/{id}/results", s.results)
	mux.HandleFunc("POST /v1/messages/batches/{id}/cancel", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.dropped = append(s.dropped, r.PathValue("id"))
		io.WriteString(w, "{}")
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// set changes how the server behaves.
func (s *batchServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// hang keeps a request without an answer until its client is gone.
func (s *batchServer) hang(r *http.Request) {
	s.silent <- struct{}{}
	<-r.Context().Done()
}

func (s *batchServer) submit(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Requests []struct {
			CustomID string `json:"custom_id"`
		}
	}
	body, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(body, &asked); err != nil || len(asked.Requests) != 1 {
		http.Error(w, string(body), http.StatusBadRequest)
		return
	}
	take := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		b := &keptBatch{fmt.Sprintf("batch_%d", len(s.batches)+1), asked.Requests[0].CustomID, time.Now().UTC().Format(time.RFC3339Nano)}
		s.batches = append(s.batches, b)
	}
	s.mu.Lock()
	submits := s.submits
	s.mu.Unlock()
	if submits != nil {
		submits(w, r, take)
		return
	}
	take()
	s.mu.Lock()
	defer s.mu.Unlock()
	io.WriteString(w, s.stands(s.batches[len(s.batches)-1]))
}

func (s *batchServer) stands(b *keptBatch) string {
	status, counts := "in_progress", `"processing":1`
	if s.ended {
		status, counts = "ended", `"processing":0,"succeeded":1`
	}
	return fmt.Sprintf(`{"id":%q,"type":"message_batch","processing_status":%q,"request_counts":{%s},"created_at":%q}`, b.id, status, counts, b.made)
}

func (s *batchServer) list(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, b := range slices.Backward(s.batches) {
		all = append(all, s.stands(b))
	}
	io.WriteString(w, `{"data":[`+strings.Join(all, ",")+`],"has_more":false}`)
}

// of finds the batch of a request, which it answers itself when there is none.
func (s *batchServer) of(w http.ResponseWriter, r *http.Request) *keptBatch {
	id := r.PathValue("id")
	for _, b := range s.batches {
		if b.id == id {
			return b
		}
	}
	w.WriteHeader(http.StatusNotFound)
	fmt.Fprintf(w, `{"type":"error","error":{"type":"not_found_error","message":"message batch %s not found"}}`, id)
	return nil
}

func (s *batchServer) poll(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	lost := s.pollLost
	s.mu.Unlock()
	if lost {
		s.hang(r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.of(w, r); b != nil {
		io.WriteString(w, s.stands(b))
	}
}

func (s *batchServer) results(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.of(w, r); b != nil {
		fmt.Fprintf(w, `{"custom_id":%q,"result":{"type":"succeeded","message":{"id":"msg_1","type":"message","role":"assistant","model":"m",`+
			`"content":[{"type":"text","text":"Answer of %s."}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}}}`+"\n", b.key, b.id)
	}
}

// newBatchWorld is one session that is answered by batches of the server.
func newBatchWorld(t *testing.T, s *batchServer) *vendorWorld {
	t.Helper()
	w := newVendorWorld(t, vendorInterfaces()[0], "jsonl", s.URL)
	w.env = append(w.env, "DROVER_RETRY_BASE_DELAY=1ms")
	return w
}

// dies kills a command once the server leaves it without an answer.
func (w *vendorWorld) dies(t *testing.T, s *batchServer, args ...string) {
	t.Helper()
	p := w.drover(t, args...)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	<-s.silent
	p.kill(t)
}

// waitsUnsure drives a session whose submission may be any batch that is still open.
func (w *vendorWorld) waitsUnsure(t *testing.T) {
	t.Helper()
	result := w.must(t, exitLater, "drive", w.session, "--wait-retry", "--poll-deferred", "--json")
	assertField(t, result, "reason", "deferred")
	assertField(t, result, "deferred.provider", "anthropic")
	if at, err := lookupField(result, "notBefore"); err != nil || at == "null" {
		t.Errorf("not before %s, %v", at, err)
	}
}

// wantBatches checks how many batches were ever made.
func (s *batchServer) wantBatches(t *testing.T, want int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.batches) != want {
		t.Errorf("%d batches were made, want %d", len(s.batches), want)
	}
}

// Two sessions whose processes die while their submissions are under way each come to
// the answer that is their own, of one batch each.
func TestVendorLostTogether(t *testing.T) {
	t.Parallel()
	s := newBatchServer(t)
	a, b := newBatchWorld(t, s), newBatchWorld(t, s)
	s.set(func() {
		s.submits = func(_ http.ResponseWriter, r *http.Request, take func()) { take(); s.hang(r) }
	})
	for _, w := range []*vendorWorld{a, b} {
		w.dies(t, s, "prompt", w.session, "go", "--deferred", "1h")
	}
	s.set(func() { s.submits = nil })
	for _, w := range []*vendorWorld{b, a} {
		w.waitsUnsure(t)
	}
	s.set(func() { s.ended = true })
	for i, w := range []*vendorWorld{a, b} {
		if got, want := w.must(t, exitOK, "drive", w.session, "--poll-deferred"), fmt.Sprintf("Answer of batch_%d.", i+1); got != want {
			t.Errorf("session %d says %q, want %q", i, got, want)
		}
		w.must(t, exitOK, "verify", w.session)
	}
	s.wantBatches(t, 2)
}

// A submission that never arrived is made again once it is known that the batch of
// another session is none of its own.
func TestVendorLostBeforeArrival(t *testing.T) {
	t.Parallel()
	s := newBatchServer(t)
	a, b := newBatchWorld(t, s), newBatchWorld(t, s)
	a.must(t, exitLater, "prompt", a.session, "go", "--deferred", "1h")
	s.set(func() { s.submits = func(_ http.ResponseWriter, r *http.Request, _ func()) { s.hang(r) } })
	b.dies(t, s, "prompt", b.session, "go", "--deferred", "1h")
	s.set(func() { s.submits = nil })
	b.waitsUnsure(t)
	b.waitsUnsure(t)
	s.wantBatches(t, 1)
	s.set(func() { s.ended = true })
	if got := b.must(t, exitOK, "drive", b.session, "--wait-retry", "--poll-deferred"); got != "Answer of batch_2." {
		t.Errorf("it says %q", got)
	}
	if got := a.must(t, exitOK, "drive", a.session, "--poll-deferred"); got != "Answer of batch_1." {
		t.Errorf("the other one says %q", got)
	}
	s.wantBatches(t, 2)
	if diff := cmp.Diff([]string{"user go", "error", "deferred", "stop Answer of batch_2."}, b.said(t)); diff != "" {
		t.Error(diff)
	}
}

// A submission whose answer is lost is not made again by the retry of the process that
// made it: the batch is there, and is the one whose answer counts.
func TestVendorSubmissionUnanswered(t *testing.T) {
	t.Parallel()
	s := newBatchServer(t)
	w := newBatchWorld(t, s)
	s.set(func() {
		s.submits = func(rw http.ResponseWriter, _ *http.Request, take func()) {
			take()
			panic(http.ErrAbortHandler) // the connection breaks
		}
	})
	result := w.must(t, exitLater, "prompt", w.session, "go", "--deferred", "1h", "--json")
	assertField(t, result, "outcome.reason", "deferred")
	s.wantBatches(t, 1)
	key, err := lookupField(result, "outcome.deferred.id")
	if err != nil || key != s.batches[0].key {
		t.Errorf("the handle is of %s, %v", key, err)
	}
	w.waitsUnsure(t)
	s.set(func() { s.ended = true })
	if got := w.must(t, exitOK, "drive", w.session, "--poll-deferred"); got != "Answer of batch_1." {
		t.Errorf("it says %q", got)
	}
	s.wantBatches(t, 1)
	if diff := cmp.Diff([]string{"user go", "error", "deferred", "stop Answer of batch_1."}, w.said(t)); diff != "" {
		t.Error(diff)
	}
	w.must(t, exitOK, "verify", w.session)
}

// An answer that is not wanted any more is dropped at the vendor, also after a process
// died in a poll for it.
func TestVendorAbortAfterDeathInPoll(t *testing.T) {
	t.Parallel()
	s := newBatchServer(t)
	w := newBatchWorld(t, s)
	w.must(t, exitLater, "prompt", w.session, "go", "--deferred", "1h")
	s.set(func() { s.pollLost = true })
	w.dies(t, s, "drive", w.session, "--poll-deferred")
	w.must(t, exitOK, "abort", w.session)
	if diff := cmp.Diff([]string{"batch_1"}, s.dropped); diff != "" {
		t.Error(diff)
	}
}
