package export

import "testing"

// A code that is taken is hashed again until one is free.
func TestCodesClash(t *testing.T) {
	c := newCodes(2)
	first := c.claim("entry")
	again := c.claim("entry")
	if first == again {
		t.Errorf("both are %08x", first)
	}
	if other := newCodes(0); other.claim("entry") != first || other.claim("entry") != again {
		t.Error("the same ids get other codes")
	}
	if got := quoteCode(0xab); got != `"000000ab"` {
		t.Errorf("got %s", got)
	}
}
