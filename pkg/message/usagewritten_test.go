package message

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A written usage is read at once, and as any spelling is read; with any byte
// changed, taken out or put in, the short way says the same or nothing.
func TestWrittenUsage(t *testing.T) {
	count := rapid.OneOf(rapid.Int64Range(0, 99), rapid.Int64Range(0, 999_999_999_999_999_999))
	cost := rapid.OneOf(rapid.SampledFrom([]float64{0, 5, 0.1, 2e-7, 1e21, 0.010065}), rapid.Float64Range(0, 1e300),
		rapid.Map(rapid.Int64Range(0, 1<<52), func(n int64) float64 { return float64(n) / 1e9 }),
		rapid.Map(rapid.Int64Range(0, 99_999), func(n int64) float64 { return float64(n) / 1e4 }))
	rapid.Check(t, func(t *rapid.T) {
		u := Usage{
			Input: count.Draw(t, "input"), Output: count.Draw(t, "output"),
			CacheRead: count.Draw(t, "cacheRead"), CacheWrite: count.Draw(t, "cacheWrite"), TotalTokens: count.Draw(t, "total"),
			Cost: Cost{cost.Draw(t, "cost 1"), cost.Draw(t, "cost 2"), cost.Draw(t, "cost 3"), cost.Draw(t, "cost 4"), cost.Draw(t, "cost 5")},
		}
		if rapid.Bool().Draw(t, "optional") {
			u.CacheWrite1h, u.Reasoning = ptr(count.Draw(t, "1h")), ptr(count.Draw(t, "reasoning"))
		}
		text, err := u.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := writtenUsage(text)
		if diff := cmp.Diff(u, got); !ok || diff != "" {
			t.Fatalf("%s: %v %s", text, ok, diff)
		}
		if again, end, ok := ReadUsage(append(append([]byte(`{"usage":`), text...), `,"x":1}`...), len(`{"usage":`)); !ok || end != len(`{"usage":`)+len(text) || cmp.Diff(u, again) != "" {
			t.Fatalf("%s inside an object: %v %d %v", text, ok, end, again)
		}
		i := rapid.IntRange(0, len(text)).Draw(t, "at")
		end := min(len(text), i+rapid.IntRange(0, 1).Draw(t, "out"))
		in := rapid.SampledFrom([]string{"", "0", "1", "-", "+", ".", "e", "E9", " ", ",", "}", `"`, "null", "00", "\x00"}).Draw(t, "in")
		changed := []byte(string(text[:i]) + in + string(text[end:]))
		short, ok := writtenUsage(changed)
		if !ok {
			return
		}
		long, err := parseUsage(changed)
		if diff := cmp.Diff(long, short); err != nil || diff != "" {
			t.Fatalf("%s: %v %s", changed, err, diff)
		}
	})
}
