package message

import "encoding/json"

// Usage counts the tokens and cost of one or more provider requests (spec §1.6).
type Usage struct {
	Input, Output         int64
	CacheRead, CacheWrite int64
	CacheWrite1h          *int64 // part of CacheWrite with an hour's lifetime, where providers say
	Reasoning             *int64 // part of Output spent on reasoning, where providers say
	TotalTokens           int64
	Cost                  Cost
}

// Cost is the price of a Usage in US dollars.
type Cost struct {
	Input, Output, CacheRead, CacheWrite, Total float64
}

// ParseUsage decodes a usage object. Missing and null fields are zero; counts
// may be spelled as any JSON number.
func ParseUsage(raw json.RawMessage) (Usage, error) { return Usage{}, nil }

// AppendJSON appends the usage object in the specification's key order; floats
// have their shortest form.
func (u Usage) AppendJSON(dst []byte) ([]byte, error) { return dst, nil }

// MarshalJSON is AppendJSON for encoding/json.
func (u Usage) MarshalJSON() ([]byte, error) { return u.AppendJSON(nil) }

// UnmarshalJSON is ParseUsage for encoding/json.
func (u *Usage) UnmarshalJSON(data []byte) (err error) {
	*u, err = ParseUsage(data)
	return err
}

// Add returns the sum. An optional field is there once either side has it.
func (u Usage) Add(v Usage) Usage { return u }

// IsZero reports whether nothing was used.
func (u Usage) IsZero() bool { return false }
