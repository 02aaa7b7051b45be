package message

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func ptr[T any](v T) *T { return &v }

func TestParseUsage(t *testing.T) {
	tests := []struct {
		in   string
		want Usage
	}{
		{`{}`, Usage{}},
		{`{"input":null,"cost":null,"reasoning":null}`, Usage{}},
		{`{"input":1e3,"output":12.0,"cacheRead":3.9,"cacheWrite":-1,"cacheWrite1h":4,"reasoning":0,"totalTokens":9007199254740993,"x":"y"}`,
			Usage{Input: 1000, Output: 12, CacheRead: 3, CacheWrite: -1, CacheWrite1h: ptr[int64](4), Reasoning: ptr[int64](0), TotalTokens: 9007199254740993}},
		{`{"c\u006fst":{"input":0.1,"output":2e-7,"cacheRead":3,"cacheWrite":4,"total":5.5,"x":[]}}`,
			Usage{Cost: Cost{Input: 0.1, Output: 2e-7, CacheRead: 3, CacheWrite: 4, Total: 5.5}}},
	}
	for _, tt := range tests {
		got, err := ParseUsage(json.RawMessage(tt.in))
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", tt.in, err, diff)
		}
	}
	for _, bad := range []string{``, `[]`, `{"input":"1"}`, `{"input":1e300}`, `{"cost":5}`, `{"cost":{"input":true}}`, `{"reasoning":{}}`} {
		if got, err := ParseUsage(json.RawMessage(bad)); err == nil {
			t.Errorf("%s: %v", bad, got)
		}
	}
}

func TestUsageJSON(t *testing.T) {
	u := Usage{
		Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, CacheWrite1h: ptr[int64](5), Reasoning: ptr[int64](6), TotalTokens: 7,
		Cost: Cost{Input: 0.1, Output: 1e-7, CacheRead: 1e21, CacheWrite: 123456789.5, Total: math.Inf(1)},
	}
	want := `{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"cacheWrite1h":5,"reasoning":6,"totalTokens":7,` +
		`"cost":{"input":0.1,"output":1e-7,"cacheRead":1e+21,"cacheWrite":123456789.5,"total":0}}`
	got, err := u.AppendJSON(nil)
	if err != nil || string(got) != want {
		t.Errorf("AppendJSON = %s, %v; want %s", got, err, want)
	}
}

// encoding/json spells floats as JavaScript does.
func TestUsageFloatsLikeJavaScript(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := Usage{Cost: Cost{Input: rapid.Float64().Draw(t, "cost"), Total: rapid.Float64Range(-1e-5, 1e-5).Draw(t, "total")}}
		got, err := u.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		in, _ := json.Marshal(u.Cost.Input)
		total, _ := json.Marshal(u.Cost.Total)
		want := `{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":` + string(in) +
			`,"output":0,"cacheRead":0,"cacheWrite":0,"total":` + string(total) + `}}`
		if string(got) != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		var back Usage
		if err := json.Unmarshal(got, &back); err != nil || back != u {
			t.Fatalf("back: %v, %v", back, err)
		}
	})
}

func TestUsageAdd(t *testing.T) {
	a := Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, TotalTokens: 10, Reasoning: ptr[int64](1),
		Cost: Cost{Input: 0.1, Output: 1, CacheRead: 2, CacheWrite: 3, Total: 0.1}}
	b := Usage{Input: 10, Output: 20, CacheRead: 30, CacheWrite: 40, TotalTokens: 100, CacheWrite1h: ptr[int64](0), Reasoning: ptr[int64](2),
		Cost: Cost{Input: 0.2, Output: 10, CacheRead: 20, CacheWrite: 30, Total: 0.2}}
	x, y := 0.1, 0.2
	want := Usage{Input: 11, Output: 22, CacheRead: 33, CacheWrite: 44, TotalTokens: 110, CacheWrite1h: ptr[int64](0), Reasoning: ptr[int64](3),
		Cost: Cost{Input: x + y, Output: 11, CacheRead: 22, CacheWrite: 33, Total: x + y}}
	if diff := cmp.Diff(want, a.Add(b)); diff != "" {
		t.Error(diff)
	}
	if *a.Reasoning != 1 || *b.Reasoning != 2 {
		t.Error("Add changed its operands")
	}
	if got := (Usage{}).Add(Usage{}); got != (Usage{}) {
		t.Errorf("zero + zero = %v", got)
	}
}

func TestUsageIsZero(t *testing.T) {
	for _, u := range []Usage{{}, {Reasoning: ptr[int64](0)}} {
		if !u.IsZero() {
			t.Errorf("%v is not zero", u)
		}
	}
	for _, u := range []Usage{{Input: 1}, {Reasoning: ptr[int64](1)}, {Cost: Cost{Total: 0.1}}} {
		if u.IsZero() {
			t.Errorf("%v is zero", u)
		}
	}
}
