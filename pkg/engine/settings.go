package engine

import (
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
)

// Settings are the harness-wide settings that may change while it runs; accepted
// operations and started steps keep what they captured (spec §4.3, §5.2).
type Settings struct {
	StreamOptions message.StreamOptions
	Retry         RetryPolicy
	Compaction    op.CompactionSettings
	SteeringMode  op.QueueMode
	FollowUpMode  op.QueueMode
	ToolExecution op.ToolExecution
}

// Settings returns the current settings.
func (h *Harness) Settings() Settings {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.opts
	return Settings{o.StreamOptions, o.Retry, o.Compaction, o.SteeringMode, o.FollowUpMode, o.ToolExecution}
}

// SetSettings replaces the settings; invalid ones change nothing.
func (h *Harness) SetSettings(s Settings) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.opts
	o.StreamOptions, o.Retry, o.Compaction = s.StreamOptions, s.Retry, s.Compaction
	o.SteeringMode, o.FollowUpMode, o.ToolExecution = s.SteeringMode, s.FollowUpMode, s.ToolExecution
	if err := o.check(); err != nil {
		return err
	}
	h.opts.StreamOptions, h.opts.Retry, h.opts.Compaction = o.StreamOptions, o.Retry, o.Compaction
	h.opts.SteeringMode, h.opts.FollowUpMode, h.opts.ToolExecution = o.SteeringMode, o.FollowUpMode, o.ToolExecution
	return nil
}

// runSettings are what a run captures at its acceptance.
func (h *Harness) runSettings() op.Settings {
	s := h.Settings()
	return op.Settings{
		Compaction: s.Compaction, SteeringMode: s.SteeringMode, FollowUpMode: s.FollowUpMode,
		ToolExecution: s.ToolExecution, StreamOptions: s.StreamOptions,
	}
}
