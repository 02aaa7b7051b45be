package rewrite

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// literal is a text that is found however JSON may spell it: each character as
// itself or as an escape, behind as many backslashes as the nesting of JSON in
// JSON text brings about.
type literal struct {
	plain []byte
	runes []rune
	// starts[i] is where rune i begins in plain.
	starts []int
	// at lists, by ASCII character, the runes that are it; other characters are
	// looked for one by one.
	at [utf8.RuneSelf][]int
	// spells tells, by the letter behind its backslashes, which escapes may stand
	// for a rune of the literal.
	spells [256]bool
}

func newLiteral(text string) *literal {
	l := &literal{plain: []byte(text)}
	for i, r := range text {
		if r < utf8.RuneSelf {
			l.at[r] = append(l.at[r], len(l.runes))
		}
		l.runes = append(l.runes, r)
		l.starts = append(l.starts, i)
	}
	for c := range l.spells {
		r := short(byte(c))
		l.spells[c] = c == 'u' || len(l.at['\\']) > 0 || r >= 0 && len(l.at[r]) > 0
	}
	return l
}

// find returns where the literal first occurs in b, start -1 when it does not.
func (l *literal) find(b []byte, raw bool) (start, end int) {
	start = -1
	l.each(b, raw, func(s, e int) bool {
		start, end = s, e
		return false
	})
	return start, end
}

// each calls yield with every occurrence in b, in order and without overlaps. In
// raw JSON text the letter of an escape is no character: the n of \n is not that
// of a name.
func (l *literal) each(b []byte, raw bool, yield func(start, end int) bool) {
	plain, spelled := l.plainFrom(b, 0, raw), l.spelledFrom(b, 0, raw)
	for plain.start >= 0 || spelled.start >= 0 {
		next := plain
		if plain.start < 0 || spelled.start >= 0 && spelled.start < plain.start {
			next = spelled
		}
		if !yield(next.start, next.end) {
			return
		}
		if plain.start >= 0 && plain.start < next.end {
			plain = l.plainFrom(b, next.end, raw)
		}
		if spelled.start >= 0 && spelled.start < next.end {
			spelled = l.spelledFrom(b, next.end, raw)
		}
	}
}

// span is an occurrence, none when start is negative.
type span struct{ start, end int }

func (l *literal) plainFrom(b []byte, from int, raw bool) span {
	for {
		i := bytes.Index(b[from:], l.plain)
		if i < 0 {
			return span{start: -1}
		}
		if i += from; !raw || !escaped(b, i) {
			return span{i, i + len(l.plain)}
		}
		from = i + 1
	}
}

// escaped reports whether b[i] belongs to an escape: its letter, or a digit of it.
func escaped(b []byte, i int) bool {
	if afterBackslash(b, i) {
		return true
	}
	for u := i - 1; u >= 0 && u >= i-4; u-- {
		if b[u] == 'u' {
			return afterBackslash(b, u)
		}
	}
	return false
}

// afterBackslash reports whether an odd number of backslashes stands before b[i].
func afterBackslash(b []byte, i int) bool {
	n := 0
	for i--; i >= 0 && b[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

// spelledFrom finds the first occurrence that holds a backslash. What precedes
// the first backslash of an occurrence is plain, so that each backslash is looked
// at once.
func (l *literal) spelledFrom(b []byte, from int, raw bool) span {
	found := span{start: -1}
	for p := from; p < len(b); {
		i := bytes.IndexByte(b[p:], '\\')
		if i < 0 || found.start >= 0 && p+i-len(l.plain) > found.start {
			return found
		}
		p += i
		run := p
		for run < len(b) && b[run] == '\\' {
			run++
		}
		if run < len(b) && !l.spells[b[run]] {
			p = run
			continue
		}
		try := func(k int) {
			s := p - l.starts[k]
			if s < from || found.start >= 0 && s >= found.start || !bytes.Equal(b[s:p], l.plain[:l.starts[k]]) {
				return
			}
			if raw && s < p && escaped(b, s) {
				return
			}
			if e := l.match(b, p, k); e >= 0 {
				found = span{s, e}
			}
		}
		l.candidates(b, run, try)
		if end := backslashesEnd(b, p); end > run {
			l.candidates(b, end, try)
		}
		p = run
	}
	return found
}

// candidates calls try with every rune of the literal that an escape may stand
// for, whose backslashes end at b[run].
func (l *literal) candidates(b []byte, run int, try func(k int)) {
	each := func(r rune) {
		if r >= 0 && r < utf8.RuneSelf {
			for _, k := range l.at[r] {
				try(k)
			}
		}
	}
	each('\\')
	if run == len(b) {
		return
	}
	if r := short(b[run]); r >= 0 {
		each(r)
	}
	unit, ok := hexUnit(b, run)
	switch {
	case !ok:
	case unit < utf8.RuneSelf:
		each(unit)
	default:
		for k, r := range l.runes {
			if r >= utf8.RuneSelf {
				try(k)
			}
		}
	}
}

// match returns where an occurrence of the literal from rune k on ends, which
// begins at b[i]; -1 when there is none.
func (l *literal) match(b []byte, i, k int) int {
	lent := false // the run of backslashes that was just taken may be the next escape's
	for k < len(l.runes) {
		if l.runes[k] == '\\' {
			need := 1
			for k+need < len(l.runes) && l.runes[k+need] == '\\' {
				need++
			}
			if i, lent = backslashes(b, i, need); i < 0 {
				return -1
			}
			k += need
			continue
		}
		if i = l.step(b, i, k, lent); i < 0 {
			return -1
		}
		k, lent = k+1, false
	}
	return i
}

// step passes over one spelling of rune k, which is no backslash.
func (l *literal) step(b []byte, i, k int, lent bool) int {
	r := l.runes[k]
	n := utf8.RuneLen(r)
	if plain := l.plain[l.starts[k] : l.starts[k]+n]; bytes.HasPrefix(b[i:], plain) {
		return i + n
	}
	run := backslashesEnd(b, i)
	if run == len(b) || run == i && !lent {
		return -1
	}
	if short(b[run]) == r {
		return run + 1
	}
	unit, ok := hexUnit(b, run)
	switch {
	case !ok:
		return -1
	case unit == r:
		return run + 5
	case !utf16.IsSurrogate(unit):
		return -1
	}
	low := backslashesEnd(b, run+5)
	if second, ok := hexUnit(b, low); ok && low > run+5 && utf16.DecodeRune(unit, second) == r {
		return low + 5
	}
	return -1
}

// backslashesEnd is where a run of backslashes that begins at b[i] ends. One that is
// itself spelled as an escape, as JSON in JSON text may have it, is a part of the run.
func backslashesEnd(b []byte, i int) int {
	for begin := i; ; {
		for i < len(b) && b[i] == '\\' {
			i++
		}
		if unit, ok := hexUnit(b, i); !ok || unit != '\\' || i == begin {
			return i
		}
		i += 5
	}
}

// roundabout reports whether b escapes a hexadecimal digit or a u. Such an escape may
// be a part of one in the JSON that a text holds: only decoding the text shows that.
func roundabout(b []byte) bool {
	for {
		at := bytes.Index(b, []byte(`\u00`))
		if at < 0 {
			return false
		}
		b = b[at+1:]
		if unit, ok := hexUnit(b, 0); ok && ('0' <= unit && unit <= '9' || 'a' <= unit|0x20 && unit|0x20 <= 'f' || unit == 'u') {
			return true
		}
	}
}

// backslashes passes over one spelling of need backslashes: as many or more, or
// their escapes. more tells that there were more.
func backslashes(b []byte, i, need int) (end int, more bool) {
	for need > 0 {
		run := i
		for run < len(b) && b[run] == '\\' {
			run++
		}
		n := run - i
		if unit, ok := hexUnit(b, run); ok && unit == '\\' && n > 0 {
			i = run + 5
			need--
			continue
		}
		if n < need {
			return -1, false
		}
		return run, n > need
	}
	return i, false
}

// short is the character of an escape of one letter, -1 when c is none.
func short(c byte) rune {
	switch c {
	case '"', '/':
		return rune(c)
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return -1
}

// hexUnit reads a u and four hexadecimal digits at b[i].
func hexUnit(b []byte, i int) (rune, bool) {
	if i+5 > len(b) || b[i] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[i+1 : i+5] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
