package model_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
)

func TestCost(t *testing.T) {
	hour := func(n int64) *int64 { return &n }
	prices := model.Prices{
		Input: 2, Output: 10, CacheRead: 0.25, CacheWrite: 2.5, CacheWrite1h: 4,
		LongAbove: 1000, Long: &model.Prices{Input: 4, Output: 16, CacheRead: 0.5, CacheWrite: 8, CacheWrite1h: 16},
	}
	tests := []struct {
		name  string
		usage message.Usage
		want  message.Cost // for a million of such requests
	}{
		{"nothing", message.Usage{}, message.Cost{}},
		{"all kinds", message.Usage{Input: 100, Output: 50, CacheRead: 400, CacheWrite: 200},
			message.Cost{Input: 200, Output: 500, CacheRead: 100, CacheWrite: 500, Total: 1300}},
		{"some of the writes live an hour", message.Usage{CacheWrite: 200, CacheWrite1h: hour(50)},
			message.Cost{CacheWrite: 575, Total: 575}},
		{"more live an hour than were written", message.Usage{CacheWrite: 200, CacheWrite1h: hour(500)},
			message.Cost{CacheWrite: 800, Total: 800}},
		{"a prompt as long as the limit", message.Usage{Input: 200, CacheRead: 800, Output: 100000},
			message.Cost{Input: 400, CacheRead: 200, Output: 1000000, Total: 1000600}},
		{"one token longer", message.Usage{Input: 200, CacheRead: 400, CacheWrite: 401, Output: 1},
			message.Cost{Input: 800, CacheRead: 200, CacheWrite: 3208, Output: 16, Total: 4224}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := prices.Cost(tt.usage)
			for _, part := range []*float64{&got.Input, &got.Output, &got.CacheRead, &got.CacheWrite, &got.Total} {
				*part *= 1e6
			}
			near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 })
			if diff := cmp.Diff(tt.want, got, near); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Half the prices make half the cost, for a prompt of any length, and leave the
// whole ones alone.
func TestTimes(t *testing.T) {
	whole := model.Prices{Input: 2, Output: 8, CacheRead: 1, CacheWrite: 4, CacheWrite1h: 16, LongAbove: 10, Long: &model.Prices{Input: 32, Output: 64}}
	half := whole.Times(0.5)
	want := model.Prices{Input: 1, Output: 4, CacheRead: 0.5, CacheWrite: 2, CacheWrite1h: 8, LongAbove: 10, Long: &model.Prices{Input: 16, Output: 32}}
	if diff := cmp.Diff(want, half); diff != "" {
		t.Error(diff)
	}
	if whole.Long.Input != 32 {
		t.Error("the prices of long prompts were changed in place")
	}
}

// A bill shows the amount that the prices make, and no rest of binary arithmetic.
func TestCostIsDecimal(t *testing.T) {
	p := model.Prices{Input: 3, Output: 15, CacheRead: 0.3}
	c := p.Cost(message.Usage{Input: 20_000, Output: 10_000, CacheRead: 0})
	if want := (message.Cost{Input: 0.06, Output: 0.15, Total: 0.21}); c != want {
		t.Errorf("got %+v", c)
	}
}
