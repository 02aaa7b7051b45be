package anthropic

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

// A lost submission is the batch that has its row, or else the only one of its
// time that is still processed.
func TestAdopt(t *testing.T) {
	at := func(d time.Duration) string { return madeAt.Add(d).Format(time.RFC3339Nano) }
	running := func(id string) string { return batch(id, "in_progress", made, 1) }
	over := func(id string) string { return batch(id, "ended", made, 1) }
	results := func(id, key string) map[string]reply {
		return map[string]reply{"GET /v1/messages/batches/" + id + "/results": {200, row(key, `{"type":"expired"}`)}}
	}
	const guess = `,"guessed":true`
	for _, tt := range []struct {
		name    string
		list    []string
		results map[string]reply
		want    message.DeferredHandle
	}{
		{"none", nil, nil, message.DeferredHandle{}},
		{"the only one", []string{running("b1")}, nil, handleOf("b1", "60000", guess)},
		{"the one that has the row", []string{running("b1"), over("b2"), over("b3")}, results("b3", rowID), handleOf("b3", "60000", "")},
		{"those that ended are others'", []string{over("b2"), running("b1")}, results("b2", "other"), handleOf("b1", "60000", guess)},
		{"several", []string{running("b1"), running("b2")}, nil, message.DeferredHandle{}},
		{"one of several rows", []string{batch("b1", "in_progress", made, 2)}, nil, message.DeferredHandle{}},
		{"an earlier one", []string{batch("b1", "in_progress", at(-2*time.Minute), 1)}, nil, message.DeferredHandle{}},
		{"a much later one", []string{batch("b1", "in_progress", at(time.Hour), 1)}, nil, message.DeferredHandle{}},
		{"by a server whose clock is slow", []string{batch("b1", "in_progress", at(-time.Second), 1)}, nil, handleOf("b1", "60000", guess)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, map[string]reply{"GET /v1/messages/batches": {200, `{"data":[` + strings.Join(tt.list, ",") + `],"has_more":false}`}})
			for path, r := range tt.results {
				s.replies[path] = r
			}
			got, ok := s.model(t, "claude-opus-4-8").Adopt(t.Context(), rowID, madeAt.UnixMilli())
			if diff := cmp.Diff(string(tt.want.Raw), string(got.Raw)); diff != "" || ok != (tt.want.Raw != nil) {
				t.Errorf("%v %s", ok, diff)
			}
			if s.asked[0] != "GET /v1/messages/batches?limit=100" {
				t.Errorf("asked %q", s.asked)
			}
		})
	}
}

func TestAdoptWithoutAnswer(t *testing.T) {
	for _, r := range []reply{{500, ""}, {200, "<html>"}, {200, `{"data":3}`}, {-1, "{"}} {
		s := serve(t, map[string]reply{"GET /v1/messages/batches": r})
		if h, ok := s.model(t, "claude-opus-4-8").Adopt(t.Context(), rowID, madeAt.UnixMilli()); ok {
			t.Errorf("%v gives %s", r, h.Raw)
		}
	}
}

// A job that was taken for the lost one and is not is as good as none: the poll is
// answered at once, at the usual price.
func TestPollOfAnothersJob(t *testing.T) {
	s := serve(t, map[string]reply{
		"GET /v1/messages/batches/msgbatch_1":         {200, ended},
		"GET /v1/messages/batches/msgbatch_1/results": {200, row("other", `{"type":"succeeded"}`)},
		"POST /v1/messages": {200, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":1}}}\n\n" +
			"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"hi\"}}\n\n" +
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"},
	})
	guessed := handleOf("msgbatch_1", "60000", `,"guessed":true`)
	got := final(t, s.model(t, "claude-opus-4-8").Poll(t.Context(), guessed, effect.Request{Messages: []message.Message{user("a")}}))
	if got.StopReason != message.StopStop || len(got.Content) != 1 || got.Content[0].Text != "hi" || got.Usage.Cost.Total != 2 {
		t.Errorf("%+v", got)
	}
	s.replies["POST /v1/messages"] = reply{529, ""}
	got = final(t, s.model(t, "claude-opus-4-8").Poll(t.Context(), guessed, effect.Request{Messages: []message.Message{user("a")}}))
	if got.StopReason != message.StopDeferred || string(got.Deferred) != string(guessed.Raw) {
		t.Errorf("a server that is busy: %+v", got)
	}
}
