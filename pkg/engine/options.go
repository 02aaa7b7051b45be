package engine

import (
	"fmt"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/telemetry"
)

// Options make a harness over one open session (spec §5.2). Session, Models and
// Seed.Model are required.
type Options struct {
	Session *store.Session
	Models  effect.Models
	// Tools are what lanes may activate; nil is none.
	Tools ToolRegistry
	// Seed is the configuration of main in a session that has none yet.
	Seed store.LaneConfiguration
	// SystemPrompt gives the system prompt of each request; nil is none. It is a
	// computation that may repeat at any time (spec §5.2), and must not change
	// within an operation without need: providers cache what they have seen.
	SystemPrompt  func(Prompting) string
	StreamOptions message.StreamOptions
	Retry         RetryPolicy
	Compaction    op.CompactionSettings
	SteeringMode  op.QueueMode     // "" is all
	FollowUpMode  op.QueueMode     // "" is all
	ToolExecution op.ToolExecution // "" is parallel
	Hooks         Hooks
	// Projectors turn custom entries of a type into context messages (spec §2.5).
	Projectors map[string]Projector
	// Telemetry receives spans; nil is nowhere (spec §5.8).
	Telemetry telemetry.Context
	// Now is the clock, Unix ms; nil means the system's (D4).
	Now func() int64
	// Manual parks every drive at its breakpoints (spec §4.2).
	Manual bool
}

// Prompting is what a system prompt may depend on. It is the same in all requests
// of an operation, as long as nobody gives the lane other tools.
type Prompting struct {
	Lane      string
	StartedAt int64    // of the operation, Unix ms
	Tools     []string // the names of the active ones
}

// RetryPolicy is the public retry policy; times are milliseconds (spec §0.7,
// D35).
type RetryPolicy struct {
	MaxRetries  int64
	BaseDelayMs int64
	// MaxDelayMs is the longest retry-after that is waited for.
	MaxDelayMs int64
}

// ToolRegistry finds tools by name. One that also has a method Nearest, as
// tool.Registry does, is asked for names like one that it does not have.
type ToolRegistry interface {
	Lookup(name string) (effect.Tool, bool)
}

// noTools is the registry of a harness without tools.
type noTools struct{}

func (noTools) Lookup(string) (effect.Tool, bool) { return nil, false }

func (o *Options) complete() error {
	if o.Session == nil || o.Models == nil {
		return fmt.Errorf("engine options need a session and models")
	}
	if o.Now == nil {
		o.Now = store.SystemNow
	}
	if o.Telemetry == nil {
		o.Telemetry = telemetry.Noop{}
	}
	if o.Tools == nil {
		o.Tools = noTools{}
	}
	if o.SteeringMode == "" {
		o.SteeringMode = op.QueueAll
	}
	if o.FollowUpMode == "" {
		o.FollowUpMode = op.QueueAll
	}
	if o.ToolExecution == "" {
		o.ToolExecution = op.Parallel
	}
	if o.Seed.ThinkingLevel == "" {
		o.Seed.ThinkingLevel = message.ThinkingOff
	}
	if o.Seed.ActiveToolNames == nil {
		o.Seed.ActiveToolNames = []string{}
	}
	return o.check()
}

func (o *Options) check() error {
	for _, mode := range []op.QueueMode{o.SteeringMode, o.FollowUpMode} {
		if mode != op.QueueAll && mode != op.QueueOne {
			return fmt.Errorf("engine options: unknown queue mode %q", mode)
		}
	}
	if o.ToolExecution != op.Parallel && o.ToolExecution != op.Sequential {
		return fmt.Errorf("engine options: unknown tool execution %q", o.ToolExecution)
	}
	numbers := map[string]int64{
		"retry max retries": o.Retry.MaxRetries, "retry base delay": o.Retry.BaseDelayMs, "retry max delay": o.Retry.MaxDelayMs,
		"compaction reserve tokens": o.Compaction.ReserveTokens, "compaction keep recent tokens": o.Compaction.KeepRecentTokens,
	}
	for name, n := range numbers {
		if n < 0 || n >= op.MaxSafeInteger {
			return fmt.Errorf("engine options: %s %d is out of range", name, n)
		}
	}
	return nil
}

// normalized is the policy as a generation captures it.
func (r RetryPolicy) normalized() op.RetryPolicy {
	return op.RetryPolicy{MaxAttempts: r.MaxRetries + 1, BaseDelayMs: r.BaseDelayMs}
}
