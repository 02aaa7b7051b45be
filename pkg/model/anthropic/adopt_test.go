package anthropic

import (
	"fmt"
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
			got := s.model(t, "claude-opus-4-8").Adopt(t.Context(), madeAt.Add(72*time.Hour).UnixMilli(), lost)
			if diff := cmp.Diff(string(tt.want.Handle.Raw), string(got.Handle.Raw)); diff != "" || got.Unsure != tt.want.Unsure {
				t.Errorf("unsure %v, handle %s", got.Unsure, diff)
			}
			if s.asked[0] != "GET /v1/messages/batches?limit=100" {
				t.Errorf("asked %q", s.asked)
			}
		})
	}
}

// A list that is not to be had now may be later; where there is none, nothing is to be
// waited for.
func TestAdoptWithoutAnswer(t *testing.T) {
	for _, tt := range []struct {
		reply
		unsure bool
	}{
		{reply{500, ""}, true}, {reply{503, ""}, true}, {reply{429, ""}, true}, {reply{408, ""}, true}, {reply{200, "<html>"}, true}, {reply{-1, "{"}, true},
		{reply{304, ""}, false}, {reply{401, ""}, false}, {reply{403, ""}, false}, {reply{404, ""}, false}, {reply{405, ""}, false}, {reply{200, `{"data":3}`}, false},
	} {
		s := serve(t, map[string]reply{"GET /v1/messages/batches": tt.reply})
		if got := s.model(t, "claude-opus-4-8").Adopt(t.Context(), madeAt.UnixMilli(), lost); got.Unsure != tt.unsure || got.Handle.Raw != nil {
			t.Errorf("%v gives %+v", tt.reply, got)
		}
	}
}

// The lost batch may lie behind many that were made since.
func TestAdoptBeyondTheFirstList(t *testing.T) {
	later, earlier := madeAt.Add(time.Hour).Format(time.RFC3339Nano), madeAt.Add(-time.Hour).Format(time.RFC3339Nano)
	list := func(more bool, jobs ...string) reply {
		return reply{200, fmt.Sprintf(`{"data":[%s],"has_more":%t}`, strings.Join(jobs, ","), more)}
	}
	const first, second = "GET /v1/messages/batches?limit=100", "GET /v1/messages/batches?after_id=n2&limit=100"
	results := reply{200, row(rowID, `{"type":"expired"}`)}
	for name, tt := range map[string]struct {
		replies map[string]reply
		found   bool
		unsure  bool
		asked   []string
	}{
		"it is on the second": {map[string]reply{
			first:                                 list(true, batch("n1", "ended", later, 1), batch("n2", "ended", later, 1)),
			second:                                list(true, batch("b1", "ended", made, 1), batch("o1", "ended", earlier, 1)),
			"GET /v1/messages/batches/b1/results": results,
		}, true, false, []string{first, second, "GET /v1/messages/batches/b1/results"}},
		"the first reaches back far enough": {map[string]reply{
			first: list(true, batch("n1", "ended", later, 1), batch("o1", "ended", earlier, 1)),
		}, false, false, []string{first}},
		"the second is not to be had": {map[string]reply{
			first: list(true, batch("n1", "ended", later, 1), batch("n2", "ended", later, 1)), second: {503, ""},
		}, false, true, []string{first, second}},
		"a server that knows one page": {map[string]reply{
			first:  list(true, batch("n1", "ended", later, 1), batch("n2", "ended", later, 1)),
			second: list(true, batch("n1", "ended", later, 1), batch("n2", "ended", later, 1)),
		}, false, false, []string{first, second}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, tt.replies)
			got := s.model(t, "claude-opus-4-8").Adopt(t.Context(), madeAt.Add(72*time.Hour).UnixMilli(), lost)
			if (got.Handle.Raw != nil) != tt.found || got.Unsure != tt.unsure {
				t.Errorf("%+v", got)
			}
			if diff := cmp.Diff(tt.asked, s.asked); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Results come after a batch's end, if late: what there is in their place meanwhile
// says nothing. Those of an old batch are gone.
func TestAdoptBeforeResults(t *testing.T) {
	for age, late := range map[time.Duration]bool{time.Hour: true, 50 * time.Hour: false} {
		for _, r := range []reply{{404, ""}, {404, `{"type":"error","error":{"type":"not_found_error","message":"Not found"}}`}, {403, ""}} {
			s := serve(t, map[string]reply{
				"GET /v1/messages/batches":            {200, `{"data":[` + batch("b1", "ended", made, 1) + `]}`},
				"GET /v1/messages/batches/b1/results": r,
			})
			got := s.model(t, "claude-opus-4-8").Adopt(t.Context(), madeAt.Add(age).UnixMilli(), lost)
			if got.Unsure != late || got.Handle.Raw != nil {
				t.Errorf("after %v, %v: %+v", age, r, got)
			}
		}
	}
}
