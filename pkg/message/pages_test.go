package message

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-run/drover/internal/rawjson"
)

// However a text is cut, in halves of characters too, pages hold what the pieces
// joined one after the other give, and never more room than twice the text.
func TestPages(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"", "a", "\xed\xa0\xbd", "\xed\xb9\x82", "a\xed\xa0\xbd", "\xed\xb9\x82b", "한", "\xed\xa0\xbd\xed\xa0\xbd",
		string(make([]byte, firstPage-1)), string(make([]byte, firstPage)), string(make([]byte, 3*firstPage)),
	})
	rapid.Check(t, func(t *rapid.T) {
		var p pages
		var want []byte
		for range rapid.IntRange(0, 40).Draw(t, "pieces") {
			s := piece.Draw(t, "piece")
			if want = rawjson.AppendJoin(want, s); rapid.Bool().Draw(t, "quoted") {
				if !p.addQuoted(rawjson.Quote(s)) {
					t.Fatalf("%q is refused", s)
				}
			} else {
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
		if room > firstPage+8*len(want) {
			t.Fatalf("%d bytes of room for %d", room, len(want))
		}
	})
}
