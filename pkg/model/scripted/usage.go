package scripted

import (
	"go.yaml.in/yaml/v3"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

// usage is what a script says of a response's usage: all of it, some, nothing.
type usage struct {
	known         message.Usage // but for what follows
	input, output *int64
	total         *int64
	totalCost     *float64
}

func (d decoder) usage(u *usage) setter {
	return func(_ string, n *yaml.Node) error {
		cost := &u.known.Cost
		return d.object(n, "usage",
			field{"input", d.optional(&u.input)},
			field{"output", d.optional(&u.output)},
			field{"cacheRead", d.whole(&u.known.CacheRead, 0)},
			field{"cacheWrite", d.whole(&u.known.CacheWrite, 0)},
			field{"cacheWrite1h", d.optional(&u.known.CacheWrite1h)},
			field{"reasoning", d.optional(&u.known.Reasoning)},
			field{"totalTokens", d.optional(&u.total)},
			field{"cost", func(_ string, n *yaml.Node) error {
				return d.object(n, "cost",
					field{"input", d.price(&cost.Input)},
					field{"output", d.price(&cost.Output)},
					field{"cacheRead", d.price(&cost.CacheRead)},
					field{"cacheWrite", d.price(&cost.CacheWrite)},
					field{"total", func(name string, n *yaml.Node) error {
						u.totalCost = new(float64)
						return d.price(u.totalCost)(name, n)
					}})
			}})
	}
}

// complete returns the usage with what the script left out: the given tokens,
// and sums for the totals.
func (u usage) complete(input, output int64) message.Usage {
	full := u.known
	full.Input, full.Output = either(u.input, input), either(u.output, output)
	full.TotalTokens = either(u.total, full.Input+full.Output+full.CacheRead+full.CacheWrite)
	c := &full.Cost
	c.Total = either(u.totalCost, c.Input+c.Output+c.CacheRead+c.CacheWrite)
	return full
}

func either[T any](said *T, otherwise T) T {
	if said != nil {
		return *said
	}
	return otherwise
}

// estimateRequest estimates the tokens of a request: system prompt and messages.
func estimateRequest(req effect.Request) int64 {
	var tokens int64
	if req.SystemPrompt != "" {
		tokens = message.EstimateTokens(message.NewUser(req.SystemPrompt, nil, 0))
	}
	for _, m := range req.Messages {
		tokens += message.EstimateTokens(m)
	}
	return tokens
}
