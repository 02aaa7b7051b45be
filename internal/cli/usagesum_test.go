package cli

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/drover-run/drover/pkg/message"
)

// A million rows add up to what a decimal calculation gives, to the last digit
// that a float can hold, whatever the order of large and small ones.
func TestMillionRowsAddUp(t *testing.T) {
	exact := new(big.Rat)
	whole, half := groups{}, []groups{{}, {}}
	naive := 0.0
	for i := range 1_000_000 {
		cost := fmt.Sprintf("0.%07d", 1+i*7919%999_983)
		if i%1000 == 0 {
			cost = fmt.Sprintf("%d.1", i) // and some that are far larger
		}
		row, err := message.ParseUsage([]byte(`{"input":3,"cost":{"input":` + cost + `,"total":` + cost + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		decimal, ok := new(big.Rat).SetString(cost)
		if !ok {
			t.Fatal(cost)
		}
		exact.Add(exact, decimal)
		naive += row.Cost.Total
		rows := []spent{{usage: row}}
		whole.add("day", rows)
		half[i%2].add("day", rows)
	}
	want, _ := exact.Float64()
	if naive == want {
		t.Error("the rows do not tell a careful sum from a careless one")
	}
	merged := groups{}
	merged.merge(half[0])
	merged.merge(half[1])
	got := whole.at(unknownCause).totals.total()
	if got.Cost.Total != want || got.Cost.Input != want || got.Input != 3_000_000 {
		t.Errorf("sum %v and %v of %d tokens, want %v", got.Cost.Total, got.Cost.Input, got.Input, want)
	}
	if both := merged.at(unknownCause); both.rows != 1_000_000 || both.totals.total().Cost.Total != want {
		t.Errorf("merged: %d rows, %v, want %v", both.rows, both.totals.total().Cost.Total, want)
	}
}

// Sessions whose own totals are plain sums of floats add up to the decimal sum, too.
func TestSessionsAddUp(t *testing.T) {
	var all usageSum
	noisy := 0
	for range 10_000 {
		var session message.Usage
		for range 55 {
			session = session.Add(message.Usage{Cost: message.Cost{Input: 0.0036, Total: 0.010065}})
		}
		if session.Cost.Input != 0.198 {
			noisy++
		}
		all.add(tidied(session))
	}
	if got := all.total().Cost; noisy == 0 || got.Input != 1980 || got.Total != 5535.75 {
		t.Errorf("%v of %d noisy sessions", got, noisy)
	}
}
