package answer_test

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model/answer"
)

// TestAnyOrderIsLegal: whatever a provider says in whatever order, and wherever
// it breaks off, the events are legal and add up to the final message.
func TestAnyOrderIsLegal(t *testing.T) {
	deltas := []string{"", "a", `"`, "{", `{"k":`, `"v"`, "}", "é", "\xc3", "\xa9", "\xed\xa0\xbd", "\xed\xb9\x82", "🙂", "\n\x00"}
	rapid.Check(t, func(rt *rapid.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		events := collect(answer.Stream(ctx, request(), base(), func(_ context.Context, b *answer.Builder) error {
			var blocks []*answer.Block
			pick := func() *answer.Block {
				if len(blocks) == 0 {
					blocks = append(blocks, b.Text())
				}
				return blocks[rapid.IntRange(0, len(blocks)-1).Draw(rt, "block")]
			}
			for range rapid.IntRange(0, 30).Draw(rt, "calls") {
				switch rapid.IntRange(0, 11).Draw(rt, "call") {
				case 0:
					b.Start("id", "")
				case 1:
					blocks = append(blocks, b.Text())
				case 2:
					blocks = append(blocks, b.Thinking())
				case 3:
					blocks = append(blocks, b.ToolCall(rapid.SampledFrom([]string{"", "c", "\xff"}).Draw(rt, "id"), "n\xc3"))
				case 4:
					b.Redacted("data\xff")
				case 5:
					pick().Sign("sig\x80")
				case 6:
					pick().End()
				case 7:
					pick().EndWith(rapid.SampledFrom(deltas).Draw(rt, "content"))
				case 8:
					pick().Name("id2\xfe", "")
				default:
					pick().Add(rapid.SampledFrom(deltas).Draw(rt, "delta"))
				}
			}
			switch rapid.IntRange(0, 4).Draw(rt, "end") {
			case 0:
				b.Done(rapid.SampledFrom([]message.StopReason{message.StopStop, message.StopLength, message.StopToolUse}).Draw(rt, "reason"), "")
			case 1:
				return errors.New("broken")
			case 2:
				cancel()
			case 3:
				return answer.Refused(500, nil, nil)
			}
			return nil
		}))
		checkFrames(rt, events)
		if end := events[len(events)-1]; message.Validate(end.Final()) != nil {
			rt.Fatalf("%s", end.Final())
		}
	})
}
