package scripted_test

import (
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/message"
)

// BenchmarkStream sends an answer of 50 MB: time and memory must follow its
// length, whatever the number of deltas.
func BenchmarkStream(b *testing.B) {
	req := request()
	req.Messages = []message.Message{message.NewUser(strings.Repeat("0123456789abcde\n", 50<<16), nil, 1)}
	m := resolve(b, "echo")
	b.SetBytes(50 << 20)
	b.ReportAllocs()
	for b.Loop() {
		for range m.Stream(b.Context(), req) {
		}
	}
}
