package message

import "github.com/drover-run/drover/internal/rawjson"

// writtenUsage reads a usage object that is spelled as AppendJSON spells it,
// which most are. Of anything else it says no more than that: ok is false.
func writtenUsage(raw []byte) (u Usage, ok bool) {
	s := speller{b: raw}
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
	return u, !s.other && s.i == len(raw)
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

// cost reads a number that is not negative.
func (s *speller) cost() float64 {
	if s.other || s.i >= len(s.b) || s.b[s.i]-'0' > 9 {
		s.other = true
		return 0
	}
	start := s.i
	end, err := rawjson.Skip(s.b, start)
	if err != nil {
		s.other = true
		return 0
	}
	s.i = end
	if end == start+1 {
		return float64(s.b[start] - '0')
	}
	f, ok := float(s.b[start:end])
	s.other = s.other || !ok
	return f
}
