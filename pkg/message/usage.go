package message

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/drover-run/drover/internal/rawjson"
)

// Usage counts the tokens and cost of one or more provider requests (spec §1.6).
type Usage struct {
	Input, Output         int64
	CacheRead, CacheWrite int64
	CacheWrite1h          *int64 // part of CacheWrite that lives an hour, where providers say
	Reasoning             *int64 // part of Output spent on reasoning, where providers say
	TotalTokens           int64
	Cost                  Cost
}

// Cost is the price of a Usage in US dollars.
type Cost struct {
	Input, Output, CacheRead, CacheWrite, Total float64
}

// ParseUsage decodes a usage object. Missing and null fields are zero; counts
// may be spelled as any JSON number, fractions are cut off.
func ParseUsage(raw json.RawMessage) (Usage, error) {
	if u, ok := writtenUsage(raw); ok {
		return u, nil
	}
	return parseUsage(raw)
}

// parseUsage is ParseUsage for any spelling.
func parseUsage(raw json.RawMessage) (Usage, error) {
	var u Usage
	var bad error
	err := rawjson.MembersFunc(raw, func(m rawjson.Member) bool {
		switch string(keyText(m.Key)) {
		case "input":
			u.Input, bad = count(m)
		case "output":
			u.Output, bad = count(m)
		case "cacheRead":
			u.CacheRead, bad = count(m)
		case "cacheWrite":
			u.CacheWrite, bad = count(m)
		case "cacheWrite1h":
			u.CacheWrite1h, bad = optionalCount(m)
		case "reasoning":
			u.Reasoning, bad = optionalCount(m)
		case "totalTokens":
			u.TotalTokens, bad = count(m)
		case "cost":
			if u.Cost, bad = parseCost(m.Value); bad != nil {
				bad = fmt.Errorf("%s: %w", m.Key, bad)
			}
		}
		return bad == nil
	})
	if err == nil {
		err = bad
	}
	if err != nil {
		return Usage{}, fmt.Errorf("decode usage: %w", err)
	}
	return u, nil
}

func parseCost(raw []byte) (Cost, error) {
	var c Cost
	if rawjson.KindOf(raw) == rawjson.Null {
		return c, nil
	}
	var bad error
	err := rawjson.MembersFunc(raw, func(m rawjson.Member) bool {
		switch string(keyText(m.Key)) {
		case "input":
			c.Input, bad = number(m)
		case "output":
			c.Output, bad = number(m)
		case "cacheRead":
			c.CacheRead, bad = number(m)
		case "cacheWrite":
			c.CacheWrite, bad = number(m)
		case "total":
			c.Total, bad = number(m)
		}
		return bad == nil
	})
	if err != nil {
		return Cost{}, err
	}
	return c, bad
}

func number(m rawjson.Member) (float64, error) {
	if rawjson.KindOf(m.Value) == rawjson.Null {
		return 0, nil
	}
	f, ok := float(m.Value)
	if !ok && rawjson.KindOf(m.Value) == rawjson.Number {
		return 0, fmt.Errorf("%s is out of range: %.40s", m.Key, m.Value)
	}
	if !ok {
		return 0, fmt.Errorf("%s is not a number: %.40s", m.Key, m.Value)
	}
	return f, nil
}

func count(m rawjson.Member) (int64, error) {
	if n, ok := rawjson.ParseInt(m.Value); ok {
		return n, nil
	}
	f, err := number(m)
	if err != nil {
		return 0, err
	}
	if math.Abs(f) >= math.MaxInt64 {
		return 0, fmt.Errorf("%s is out of range: %.40s", m.Key, m.Value)
	}
	return int64(f), nil
}

func optionalCount(m rawjson.Member) (*int64, error) {
	if rawjson.KindOf(m.Value) == rawjson.Null {
		return nil, nil
	}
	n, err := count(m)
	return &n, err
}

// MaxCount is how many tokens one request or tool may say that it used: far more than
// there can be, and little enough for a sum of millions.
const MaxCount = 1_000_000_000_000

// Check refuses what nobody can have used: negative counts and costs, and counts above
// MaxCount, with which sums would overflow.
func (u Usage) Check() error {
	counts := []int64{u.Input, u.Output, u.CacheRead, u.CacheWrite, value(u.CacheWrite1h), value(u.Reasoning), u.TotalTokens}
	c := u.Cost
	switch {
	case slices.Min(counts) < 0:
		return errors.New("usage has a negative count")
	case slices.Max(counts) > MaxCount:
		return fmt.Errorf("usage has a count above %d", int64(MaxCount))
	case min(c.Input, c.Output, c.CacheRead, c.CacheWrite, c.Total) < 0:
		return errors.New("usage has a negative cost")
	}
	return nil
}

// AppendJSON appends the usage object: keys in the specification's order,
// floats in their shortest form.
func (u Usage) AppendJSON(dst []byte) ([]byte, error) {
	dst = appendInt(dst, `{"input":`, u.Input)
	dst = appendInt(dst, `,"output":`, u.Output)
	dst = appendInt(dst, `,"cacheRead":`, u.CacheRead)
	dst = appendInt(dst, `,"cacheWrite":`, u.CacheWrite)
	if u.CacheWrite1h != nil {
		dst = appendInt(dst, `,"cacheWrite1h":`, *u.CacheWrite1h)
	}
	if u.Reasoning != nil {
		dst = appendInt(dst, `,"reasoning":`, *u.Reasoning)
	}
	dst = appendInt(dst, `,"totalTokens":`, u.TotalTokens)
	dst = appendFloat(append(dst, `,"cost":{"input":`...), u.Cost.Input)
	dst = appendFloat(append(dst, `,"output":`...), u.Cost.Output)
	dst = appendFloat(append(dst, `,"cacheRead":`...), u.Cost.CacheRead)
	dst = appendFloat(append(dst, `,"cacheWrite":`...), u.Cost.CacheWrite)
	dst = appendFloat(append(dst, `,"total":`...), u.Cost.Total)
	return append(dst, "}}"...), nil
}

// MarshalJSON is AppendJSON for encoding/json.
func (u Usage) MarshalJSON() ([]byte, error) { return u.AppendJSON(nil) }

// UnmarshalJSON is ParseUsage for encoding/json.
func (u *Usage) UnmarshalJSON(data []byte) (err error) {
	*u, err = ParseUsage(data)
	return err
}

// Add returns the sum. An optional field is there once either side has it;
// costs are added as floats, u first.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input:        u.Input + v.Input,
		Output:       u.Output + v.Output,
		CacheRead:    u.CacheRead + v.CacheRead,
		CacheWrite:   u.CacheWrite + v.CacheWrite,
		CacheWrite1h: addOptional(u.CacheWrite1h, v.CacheWrite1h),
		Reasoning:    addOptional(u.Reasoning, v.Reasoning),
		TotalTokens:  u.TotalTokens + v.TotalTokens,
		Cost: Cost{
			Input:      u.Cost.Input + v.Cost.Input,
			Output:     u.Cost.Output + v.Cost.Output,
			CacheRead:  u.Cost.CacheRead + v.Cost.CacheRead,
			CacheWrite: u.Cost.CacheWrite + v.Cost.CacheWrite,
			Total:      u.Cost.Total + v.Cost.Total,
		},
	}
}

func addOptional(a, b *int64) *int64 {
	if a == nil && b == nil {
		return nil
	}
	sum := value(a) + value(b)
	return &sum
}

func value(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}

// IsZero reports whether nothing was used; optional fields may be there as 0.
func (u Usage) IsZero() bool {
	if value(u.CacheWrite1h) != 0 || value(u.Reasoning) != 0 {
		return false
	}
	u.CacheWrite1h, u.Reasoning = nil, nil
	return u == Usage{}
}

// context returns the tokens the request and its answer took of the model's
// context window.
func (u Usage) context() int64 {
	if u.TotalTokens != 0 {
		return u.TotalTokens
	}
	return u.Input + u.Output + u.CacheRead + u.CacheWrite
}
