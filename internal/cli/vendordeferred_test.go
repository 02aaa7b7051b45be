package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// jobServer is a vendor that answers later: by message batches or in the background.
type jobServer struct {
	*httptest.Server
	mu         sync.Mutex
	submitted  int
	polls      int
	key        string           // that the submission gave its row
	says       http.HandlerFunc // to polls, nil for how the job stands
	done       bool             // the job has its answer
	background bool             // the submission asked for it
}

func newJobServer(t *testing.T) *jobServer {
	t.Helper()
	s := &jobServer{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages/batches", s.submit)
	mux.HandleFunc("POST /v1/responses", s.submit)
	mux.HandleFunc("GET /v1/messages/batches/{id}", s.poll)
	mux.HandleFunc("GET /v1/responses/{id}", s.poll)
	mux.HandleFunc("GET /v1/messages/batches/{id}/results", s.results)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *jobServer) submit(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Requests []struct {
			CustomID string `json:"custom_id"`
		}
		Background bool
	}
	body, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(body, &asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.submitted++
	s.background = asked.Background
	if len(asked.Requests) == 1 {
		s.key = asked.Requests[0].CustomID
	}
	s.stands(w, r)
}

// stands tells how the job stands.
func (s *jobServer) stands(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if !strings.Contains(r.URL.Path, "batches") {
		if s.done {
			io.WriteString(w, completedResponse)
			return
		}
		io.WriteString(w, `{"id":"job_1","object":"response","status":"queued","background":true,"model":"m","output":[]}`)
		return
	}
	status, counts := "in_progress", `{"processing":1,"succeeded":0,"errored":0,"canceled":0,"expired":0}`
	if s.done {
		status, counts = "ended", `{"processing":0,"succeeded":1,"errored":0,"canceled":0,"expired":0}`
	}
	now := time.Now().UTC()
	fmt.Fprintf(w, `{"id":"job_1","type":"message_batch","processing_status":%q,"request_counts":%s,"created_at":%q,"expires_at":%q}`,
		status, counts, now.Format(time.RFC3339), now.Add(24*time.Hour).Format(time.RFC3339))
}

const completedResponse = `{"id":"job_1","object":"response","status":"completed","background":true,"model":"m","output":[` +
	`{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"At last.","annotations":[]}]}],` +
	`"usage":{"input_tokens":1000,"output_tokens":50,"total_tokens":1050}}`

func (s *jobServer) poll(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.polls++
	says := s.says
	s.mu.Unlock()
	if says != nil {
		says(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stands(w, r)
}

func (s *jobServer) results(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(w, `{"custom_id":%q,"result":{"type":"succeeded","message":{"id":"msg_1","type":"message","role":"assistant","model":"m",`+
		`"content":[{"type":"text","text":"At last."}],"stop_reason":"end_turn","usage":{"input_tokens":1000,"output_tokens":50}}}}`+"\n", s.key)
}

// will sets what polls are told from now on.
func (s *jobServer) will(done bool, says http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done, s.says = done, says
}

// wasPolled checks how often the job was asked for so far; it was submitted once.
func (s *jobServer) wasPolled(t *testing.T, want int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.polls != want || s.submitted != 1 {
		t.Fatalf("the job was submitted %d times and asked for %d times, want 1 and %d", s.submitted, s.polls, want)
	}
}

// An answer that comes later is fetched by whatever timer drives the repository:
// through a name that is not found, a limit and a job that takes its time, each asked
// for once; and a poll that dies before it is settled is made once again.
func TestVendorDeferred(t *testing.T) {
	for i, api := range vendorInterfaces()[:2] {
		t.Run(api.name, func(t *testing.T) {
			t.Parallel()
			s := newJobServer(t)
			w := newVendorWorld(t, api, []string{"sqlite", "jsonl"}[i], s.URL)
			before := time.Now().UnixMilli()
			result := w.must(t, exitLater, "prompt", w.session, "go", "--deferred", "24h", "--json")
			assertField(t, result, "exit.code", "75")
			assertField(t, result, "outcome.reason", "deferred")
			at, err := lookupField(result, "notBefore")
			if err != nil || at <= fmt.Sprint(before) {
				t.Fatalf("not before %s: %v", at, err)
			}
			assertField(t, result, "outcome.notBefore", at)
			if s.background != (api.name == "responses") {
				t.Errorf("background is %v", s.background)
			}

			if woken := w.pending(t, "0s"); woken != at {
				t.Errorf("the timer shall come at %s, the prompt said %s", woken, at)
			}
			s.wasPolled(t, 0) // nothing was due
			w.at(t, "http://no..such.host")
			w.pending(t, "10m")
			w.at(t, s.URL)
			s.wasPolled(t, 0)
			s.will(false, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "3")
				http.Error(w, `{"error":{"message":"slow down"}}`, http.StatusTooManyRequests)
			})
			w.pending(t, "20m")
			s.wasPolled(t, 1)
			s.will(false, nil)
			w.pending(t, "30m")
			s.wasPolled(t, 2)

			w.dieInPoll(t, s, "40m")
			s.wasPolled(t, 3)
			s.will(true, nil)
			p := w.drover(t, "drive", w.session, "--poll-deferred", "--manual")
			p.Stdout, p.Env = nil, append(p.Env, aheadVariable+"=50m")
			p.Stderr = nil
			killBefore(t, p.Cmd, "deferred.settlement")
			s.wasPolled(t, 4)

			swept := w.sweep(t, exitOK, "60m")
			assertField(t, swept, "totals.settled", "1")
			s.wasPolled(t, 5)
			assertField(t, w.sweep(t, exitOK, "70m"), "totals.driven", "0")
			s.wasPolled(t, 5)
			if diff := cmp.Diff([]string{"user go", "deferred", "deferred", "deferred", "deferred", "stop At last."}, w.said(t)); diff != "" {
				t.Errorf("the conversation differs:\n%s", diff)
			}
			shown := w.must(t, exitOK, "show", w.session, "--json")
			assertField(t, shown, "entries.2.message.diagnostics.0.class", "network")
			assertField(t, shown, "entries.3.message.diagnostics.0.status", "429")
			w.must(t, exitOK, "verify", w.session)
		})
	}
}

// sweep is one run of a timer's command, that much later.
func (w *vendorWorld) sweep(t *testing.T, want exitCode, later string) string {
	t.Helper()
	env := w.env
	w.env = append(env[:len(env):len(env)], aheadVariable+"="+later)
	defer func() { w.env = env }()
	return w.must(t, want, "drive", "--all", "--poll-deferred", "--json")
}

// pending is one that leaves the answer pending; it returns when to come again.
func (w *vendorWorld) pending(t *testing.T, later string) string {
	t.Helper()
	result := w.sweep(t, exitLater, later)
	assertField(t, result, "items.0.reason", "deferred")
	assertField(t, result, "items.0.deferred.id", "job_1")
	assertField(t, result, "totals.waiting", "1")
	at, err := lookupField(result, "totals.nextWake")
	if err != nil {
		t.Error(err)
	}
	return at
}

// dieInPoll kills a timer's command while the vendor is still silent about the job.
func (w *vendorWorld) dieInPoll(t *testing.T, s *jobServer, later string) {
	t.Helper()
	asked := make(chan struct{})
	s.will(false, func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	})
	p := w.drover(t, "drive", "--all", "--poll-deferred")
	p.Env = append(p.Env, aheadVariable+"="+later)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	p.kill(t)
}
