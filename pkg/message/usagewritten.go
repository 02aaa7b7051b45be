package message

import "github.com/drover-run/drover/internal/rawjson"

// ReadUsage reads the usage object at b[i] if it is spelled as AppendJSON spells
// it, which most are, and returns the index after it. Of anything else it says no
// more than that: ok is false.
func ReadUsage(b []byte, i int) (u Usage, end int, ok bool) {
	s := speller{b: b, i: i}
	s.literal(`{"input":`)
	u.Input = s.count()
	s.literal(`,"output":`)
	u.Output = s.count()
	s.literal(`,"cacheRead":`)
	u.CacheRead = s.count()
	s.literal(`,"cacheWrite":`)
	u.CacheWrite = s.count()
	if s.takes(`,"cacheWrite1h":`) {
		u.CacheWrite1h = new(s.count())
	}
	if s.takes(`,"reasoning":`) {
		u.Reasoning = new(s.count())
	}
	s.literal(`,"totalTokens":`)
	u.TotalTokens = s.count()
	s.literal(`,"cost":{"input":`)
	u.Cost.Input = s.cost()
	s.literal(`,"output":`)
	u.Cost.Output = s.cost()
	s.literal(`,"cacheRead":`)
	u.Cost.CacheRead = s.cost()
	s.literal(`,"cacheWrite":`)
	u.Cost.CacheWrite = s.cost()
	s.literal(`,"total":`)
	u.Cost.Total = s.cost()
	s.literal(`}}`)
	return u, s.i, !s.other
}

// writtenUsage is ReadUsage for what is nothing but the object.
func writtenUsage(raw []byte) (u Usage, ok bool) {
	u, end, ok := ReadUsage(raw, 0)
	return u, ok && end == len(raw)
}

// speller reads literal text. Once something else comes, other is true and what
// it reads means nothing.
type speller struct {
	b     []byte
	i     int
	other bool
}

func (s *speller) takes(text string) bool {
	end := s.i + len(text)
	if s.other || end > len(s.b) || string(s.b[s.i:end]) != text {
		return false
	}
	s.i = end
	return true
}

func (s *speller) literal(text string) {
	if !s.takes(text) {
		s.other = true
	}
}

// count reads up to 18 digits, which cannot overflow.
func (s *speller) count() (n int64) {
	start := s.i
	for s.i < len(s.b) && s.b[s.i]-'0' <= 9 {
		n = n*10 + int64(s.b[s.i]-'0')
		s.i++
	}
	digits := s.i - start
	s.other = s.other || digits == 0 || digits > 18 || (digits > 1 && s.b[start] == '0')
	return n
}

// tenths are the powers of ten that a float64 holds exactly.
var tenths = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// cost reads a number that is not negative.
func (s *speller) cost() float64 {
	if s.other || s.i >= len(s.b) || s.b[s.i]-'0' > 9 {
		s.other = true
		return 0
	}
	start := s.i
	if f, ok := s.decimal(); ok {
		return f
	}
	end, err := rawjson.Skip(s.b, start)
	if err != nil {
		s.other = true
		return 0
	}
	s.i = end
	f, ok := float(s.b[start:end])
	s.other = s.other || !ok
	return f
}

// decimal reads a number of up to 15 digits: they and the power of ten that they
// are divided by are exact, and so is the rounding of the quotient.
func (s *speller) decimal() (f float64, ok bool) {
	i, n, point := s.i, int64(0), -1
	for ; i < len(s.b); i++ {
		c := s.b[i]
		if c == '.' && point < 0 && i > s.i {
			point = i
			continue
		}
		if c-'0' > 9 {
			break
		}
		if n = n*10 + int64(c-'0'); n >= 1e15 {
			return 0, false
		}
	}
	whole, fraction := i-s.i, 0
	if point >= 0 {
		whole, fraction = point-s.i, i-point-1
	}
	switch {
	case whole > 1 && s.b[s.i] == '0', point >= 0 && fraction == 0, fraction >= len(tenths):
		return 0, false
	case i < len(s.b) && s.b[i]|0x20 == 'e':
		return 0, false
	}
	s.i = i
	return float64(n) / tenths[fraction], true
}
