package message

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-run/drover/internal/rawjson"
)

// However a text is cut, in halves of characters too, pages hold what the pieces
// joined one after the other give, and room in proportion to what came in.
func TestPages(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"", "a", "\xed\xa0\xbd", "\xed\xb9\x82", "a\xed\xa0\xbd", "\xed\xb9\x82b", "한", "\xed\xa0\xbd\xed\xa0\xbd",
		string(make([]byte, firstPage-1)), string(make([]byte, firstPage)), string(make([]byte, 3*firstPage)),
	})
	rapid.Check(t, func(t *rapid.T) {
		var p pages
		var want []byte
		came := 0
		for range rapid.IntRange(0, 40).Draw(t, "pieces") {
			s := piece.Draw(t, "piece")
			if want = rawjson.AppendJoin(want, s); rapid.Bool().Draw(t, "quoted") {
				raw := rawjson.Quote(s)
				came += len(raw)
				if !p.addQuoted(raw) {
					t.Fatalf("%q is refused", s)
				}
			} else {
				came += len(s)
				p.add(s)
			}
		}
		if got := p.String(); got != string(want) {
			t.Fatalf("got %q, want %q", got, want)
		}
		room := cap(p.last)
		for _, page := range p.full {
			room += cap(page)
		}
		if room > firstPage+4*came {
			t.Fatalf("%d bytes of room for %d", room, came)
		}
	})
}
