package enginetest_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
)

// outcomes are what a provider may answer, by whether another attempt follows and
// how the run ends when none does.
var outcomes = []struct {
	name    string
	retried bool
	end     enginetest.End
	reply   func(prompt string) enginetest.Reply
}{
	{"answer", false, completed, func(p string) enginetest.Reply { return enginetest.Say("re: ", p) }},
	{"cut off", false, completed, func(string) enginetest.Reply {
		return enginetest.Reply{Chunks: []string{"cut"}, Stop: message.StopLength, Usage: &message.Usage{Input: 5, Output: 8_000, TotalTokens: 8_005}}
	}},
	{"refusal", false, failedWith("provider_error"), func(string) enginetest.Reply { return enginetest.Refuse("no", 400, 0) }},
	{"overflow", false, failedWith("context_overflow"), func(string) enginetest.Reply { return enginetest.Fail("prompt is too long") }},
	{"overload", true, enginetest.End{}, func(string) enginetest.Reply {
		return enginetest.Reply{Chunks: []string{"par", "tial"}, Error: "overloaded"}
	}},
	{"limit", true, enginetest.End{}, func(string) enginetest.Reply { return enginetest.Refuse("slow down", 429, 50) }},
	{"vanishing", true, enginetest.End{}, func(string) enginetest.Reply {
		return enginetest.Reply{Thinking: "hm", Chunks: []string{"a"}, Vanish: true}
	}},
}

var completed = enginetest.End{Outcome: op.Completed, Completion: op.CompletedByAssistant}

func failedWith(code string) enginetest.End {
	return enginetest.End{Outcome: op.Failed, Code: code}
}

// Any legal history of prompts, failures, retries, crashes and reopenings keeps
// the invariants after every commit and ends as its provider decides: crashes
// cost attempts and nothing else.
func TestHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := enginetest.InMemory(t)
		w.Watch = true
		*w.Pace = rapid.SampledFrom([]enginetest.Pace{enginetest.Lockstep, enginetest.Late, enginetest.Free}).Draw(t, "pace")
		w.Options.Retry.BaseDelayMs = rapid.Int64Range(0, 50).Draw(t, "delay")
		provider := drawProvider(t)
		w.Model.Reply = provider.reply
		deaths := rapid.SliceOfN(rapid.IntRange(1, 25), 0, 4).Draw(t, "deaths")
		w.Options.Retry.MaxRetries = int64(provider.failures + len(deaths))

		for _, n := range deaths {
			w.OpenUntil(n)
			_ = w.Play(t.Context(), provider.prompts) // dies, or is done already
			_ = w.Harness.Close()
		}
		w.Open()
		if err := w.Play(t.Context(), provider.prompts); err != nil {
			t.Fatal(err)
		}
		_ = w.Harness.Close()
		w.Settled()
		said, end := w.End()
		essence, _ := enginetest.Essence(said)
		enginetest.Equal(t, "conversation", essence, provider.essence)
		enginetest.Equal(t, "end", end, provider.end)
	})
}

// provider is a drawn conversation: per prompt what goes wrong and how it ends.
type provider struct {
	prompts  []string
	script   map[string][]enginetest.Reply
	failures int // of the prompt with most of them
	essence  []enginetest.Said
	end      enginetest.End
}

func drawProvider(t *rapid.T) *provider {
	p := &provider{script: make(map[string][]enginetest.Reply)}
	for i := range rapid.IntRange(1, 3).Draw(t, "prompts") {
		prompt := fmt.Sprintf("prompt %d", i)
		p.prompts = append(p.prompts, prompt)
		p.essence = append(p.essence, enginetest.Said{Role: message.RoleUser, Text: prompt})
		for {
			o := rapid.SampledFrom(outcomes).Draw(t, prompt)
			reply := o.reply(prompt)
			p.script[prompt] = append(p.script[prompt], reply)
			if o.retried {
				continue
			}
			if o.end == completed {
				stop := reply.Stop
				if stop == "" {
					stop = message.StopStop
				}
				text := ""
				for _, c := range reply.Chunks {
					text += c
				}
				p.essence = append(p.essence, enginetest.Said{Role: message.RoleAssistant, Stop: stop, Text: text})
			}
			p.end = o.end
			break
		}
		p.failures = max(p.failures, len(p.script[prompt])-1)
	}
	return p
}

// reply gives a prompt's next answer and repeats its last.
func (p *provider) reply(_ int, req effect.Request) enginetest.Reply {
	prompt := enginetest.LastPrompt(req)
	script := p.script[prompt]
	if len(script) > 1 {
		p.script[prompt] = script[1:]
	}
	return script[0]
}
