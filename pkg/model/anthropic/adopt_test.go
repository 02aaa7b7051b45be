package anthropic

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine/effect"
)

// earlierID is the row of an attempt a minute and a half before that of rowID.
const earlierID = "018bcfe4-0888-7188-8627-c76b1bfb1fa3"

var lost = []effect.Submission{
	{ResponseEntryID: rowID, ReservedAt: madeAt.UnixMilli()},
	{ResponseEntryID: earlierID, ReservedAt: madeAt.Add(-90 * time.Second).UnixMilli()},
}

// A lost submission is the batch that has its row. Before a batch of its time has
// ended, nobody knows whose it is: it is neither taken nor ruled out.
func TestAdopt(t *testing.T) {
	at := func(d time.Duration) string { return madeAt.Add(d).Format(time.RFC3339Nano) }
	running := func(id string) string { return batch(id, "in_progress", made, 1) }
	over := func(id string) string { return batch(id, "ended", made, 1) }
	has := func(id, key string) map[string]reply {
		return map[string]reply{"GET /v1/messages/batches/" + id + "/results": {200, row(key, `{"type":"expired"}`)}}
	}
	refuses := func(id string, status int) map[string]reply {
		return map[string]reply{"GET /v1/messages/batches/" + id + "/results": {status, ""}}
	}
	found := func(id, key string) effect.Adoption {
		h := handleOf(id, "60000")
		h.Raw = []byte(strings.Replace(string(h.Raw), rowID, key, 1))
		return effect.Adoption{Handle: h}
	}
	unsure := effect.Adoption{Unsure: true}
	for _, tt := range []struct {
		name    string
		list    []string
		results map[string]reply
		want    effect.Adoption
	}{
		{"none", nil, nil, effect.Adoption{}},
		{"the only one that still runs", []string{running("b1")}, nil, unsure},
		{"several that still run", []string{running("b1"), running("b2")}, nil, unsure},
		{"the one that has the row", []string{running("b1"), over("b2"), over("b3")}, has("b3", rowID), found("b3", rowID)},
		{"the one of an earlier attempt", []string{over("b1")}, has("b1", earlierID), found("b1", earlierID)},
		{"another's", []string{over("b2")}, has("b2", "other"), effect.Adoption{}},
		{"another's, and one that still runs", []string{over("b2"), running("b1")}, has("b2", "other"), unsure},
		{"one that does not tell now", []string{over("b2")}, refuses("b2", 503), unsure},
		{"one that does not tell for lack of time", []string{over("b2")}, refuses("b2", 429), unsure},
		{"one whose results are gone", []string{over("b2")}, nil, effect.Adoption{}},
		{"one of several rows", []string{batch("b1", "in_progress", made, 2)}, nil, effect.Adoption{}},
		{"an earlier one", []string{batch("b1", "in_progress", at(-3*time.Minute), 1)}, nil, effect.Adoption{}},
		{"one of the time of an earlier attempt", []string{batch("b1", "in_progress", at(-2*time.Minute), 1)}, nil, unsure},
		{"a much later one", []string{batch("b1", "in_progress", at(time.Hour), 1)}, nil, effect.Adoption{}},
		{"by a server whose clock is slow", []string{batch("b1", "in_progress", at(-time.Second), 1)}, nil, unsure},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, map[string]reply{"GET /v1/messages/batches": {200, `{"data":[` + strings.Join(tt.list, ",") + `],"has_more":false}`}})
			for path, r := range tt.results {
				s.replies[path] = r
			}
			got := s.model(t, "claude-opus-4-8").Adopt(t.Context(), lost)
			if diff := cmp.Diff(string(tt.want.Handle.Raw), string(got.Handle.Raw)); diff != "" || got.Unsure != tt.want.Unsure {
				t.Errorf("unsure %v, handle %s", got.Unsure, diff)
			}
			if s.asked[0] != "GET /v1/messages/batches?limit=100" {
				t.Errorf("asked %q", s.asked)
			}
		})
	}
}

func TestAdoptWithoutAnswer(t *testing.T) {
	for _, r := range []reply{{500, ""}, {304, ""}, {200, "<html>"}, {200, `{"data":3}`}, {-1, "{"}} {
		s := serve(t, map[string]reply{"GET /v1/messages/batches": r})
		if got := s.model(t, "claude-opus-4-8").Adopt(t.Context(), lost); got.Unsure || got.Handle.Raw != nil {
			t.Errorf("%v gives %+v", r, got)
		}
	}
}
