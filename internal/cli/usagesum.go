package cli

import (
	"math"
	"strconv"

	"github.com/drover-run/drover/pkg/message"
)

// usageSum adds usage up. Costs keep what floats round away (Neumaier), so that
// the sum of a million rows is the one that a decimal calculation gives.
type usageSum struct {
	u    message.Usage
	lost message.Cost
}

func (s *usageSum) add(u message.Usage) {
	before := s.u.Cost
	s.u = s.u.Add(u)
	keep := func(sum, was, added float64, lost *float64) {
		if math.Abs(was) >= math.Abs(added) {
			*lost += (was - sum) + added
		} else {
			*lost += (added - sum) + was
		}
	}
	keep(s.u.Cost.Input, before.Input, u.Cost.Input, &s.lost.Input)
	keep(s.u.Cost.Output, before.Output, u.Cost.Output, &s.lost.Output)
	keep(s.u.Cost.CacheRead, before.CacheRead, u.Cost.CacheRead, &s.lost.CacheRead)
	keep(s.u.Cost.CacheWrite, before.CacheWrite, u.Cost.CacheWrite, &s.lost.CacheWrite)
	keep(s.u.Cost.Total, before.Total, u.Cost.Total, &s.lost.Total)
}

// merge adds another sum, with what it has kept.
func (s *usageSum) merge(other usageSum) {
	s.add(other.u)
	s.lost.Input += other.lost.Input
	s.lost.Output += other.lost.Output
	s.lost.CacheRead += other.lost.CacheRead
	s.lost.CacheWrite += other.lost.CacheWrite
	s.lost.Total += other.lost.Total
}

func (s *usageSum) total() message.Usage {
	u := s.u
	u.Cost.Input += s.lost.Input
	u.Cost.Output += s.lost.Output
	u.Cost.CacheRead += s.lost.CacheRead
	u.Cost.CacheWrite += s.lost.CacheWrite
	u.Cost.Total += s.lost.Total
	return tidied(u)
}

// tidied is usage that was added up as floats, one by one, without the noise of that:
// costs are rounded to a millionth of a millionth of a dollar, far below any price and
// far above what the floats of a session round away. The sum over many sessions of
// what was not tidied would show the noise of all.
func tidied(u message.Usage) message.Usage {
	for _, cost := range []*float64{&u.Cost.Input, &u.Cost.Output, &u.Cost.CacheRead, &u.Cost.CacheWrite, &u.Cost.Total} {
		if rounded, err := strconv.ParseFloat(strconv.FormatFloat(*cost, 'f', 12, 64), 64); err == nil {
			*cost = rounded
		}
	}
	return u
}
