package engine

import (
	"errors"
	"sync/atomic"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/telemetry"
)

// spans are the open spans of a pass (spec §5.8): the operation, below it the turn
// while there is one, below that whatever step runs. A turn goes on over the steps
// of the drive loop; it ends with the first step that is not part of it.
type spans struct {
	operation telemetry.Span
	turn      telemetry.Span // nil between turns
	turnID    string
	// inner is the innermost one; tools and the commits of other goroutines start
	// theirs below it.
	inner atomic.Pointer[telemetry.Span]
}

// operationSpan names the span of an operation of a kind.
func operationSpan(k op.Kind) string {
	switch k {
	case op.KindCompaction:
		return telemetry.SpanCompaction
	case op.KindNavigation:
		return telemetry.SpanNavigation
	}
	return telemetry.SpanRun
}

func (s *spans) begin(c telemetry.Context, p *pass) {
	s.operation = c.Start(operationSpan(p.kind),
		telemetry.String("pi.operation_id", p.operationID), telemetry.String("pi.lane", p.lane.name))
	s.inner.Store(&s.operation)
}

// Start starts a span below the innermost one.
func (s *spans) Start(name string, attrs ...telemetry.Attr) telemetry.Span {
	return (*s.inner.Load()).Start(name, attrs...)
}

// step opens the spans that a step of the drive loop runs in; the function that it
// returns closes those that end with it.
func (s *spans) step(t op.Turn) (leave func(error)) {
	if telemetry.Off(s.operation) {
		return func(error) {}
	}
	d := op.DescribeStep(t.State)
	if d.TurnID != s.turnID {
		s.endTurn()
	}
	if d.TurnID != "" && s.turn == nil {
		turn := s.operation.Start(telemetry.SpanTurn, telemetry.String("pi.turn_id", d.TurnID))
		s.turn, s.turnID = turn, d.TurnID
		s.inner.Store(&turn)
	}
	name, attrs := "", []telemetry.Attr(nil)
	switch {
	case d.Checkpoint:
		name = telemetry.SpanCheckpoint
	case d.StepID != "":
		name, attrs = telemetry.SpanStep, []telemetry.Attr{
			telemetry.String("pi.step_id", d.StepID), telemetry.Int("pi.attempt", d.Attempt),
		}
	case d.TaskID != "":
		name, attrs = telemetry.SpanStep, []telemetry.Attr{
			telemetry.String("pi.task_id", d.TaskID), telemetry.Int("pi.attempt", d.Attempt),
		}
	default:
		return func(error) {}
	}
	outer := s.inner.Load()
	span := (*outer).Start(name, attrs...)
	s.inner.Store(&span)
	return func(err error) {
		span.End(err)
		s.inner.Store(outer)
	}
}

func (s *spans) endTurn() {
	if s.turn != nil {
		s.turn.End(nil)
		s.turn, s.turnID = nil, ""
		s.inner.Store(&s.operation)
	}
}

// end closes what is open.
func (s *spans) end(outcome DriveKind, err error) {
	s.endTurn()
	s.operation.Set(telemetry.String("pi.outcome", string(outcome)))
	s.operation.End(err)
}

// spanParent is what commits and events of a lane are told below: the innermost span
// of the lane's pass, or what the harness is told below (spec §5.8).
func (h *Harness) spanParent(lane string) telemetry.Context {
	l, err := h.Lane(lane)
	if err != nil {
		return h.opts.Telemetry
	}
	if p := l.activePass(); p != nil && p.spans.inner.Load() != nil {
		return &p.spans
	}
	return h.opts.Telemetry
}

// spanError is the failure that a step's span ends with: what only sends the loop
// round again is none.
func spanError(err error) error {
	if errors.Is(err, errOperationEnded) || errors.Is(err, errAgain) || errors.Is(err, errCancelled) {
		return nil
	}
	if _, aborted := errors.AsType[*effect.AbortRequested](err); aborted {
		return nil
	}
	return err
}

// requestSpan covers one admitted provider request.
func (p *pass) requestSpan(model effect.Model) telemetry.Span {
	ref := model.Info().Ref
	return p.spans.Start(telemetry.SpanRequest, telemetry.String("pi.provider", ref.Provider), telemetry.String("pi.model", ref.ModelID))
}

// endRequest ends it with what its answer says of itself, and none of its content.
func endRequest(span telemetry.Span, answer message.Message) {
	if telemetry.Off(span) {
		return
	}
	info := message.ProviderError(answer)
	span.Set(telemetry.String("pi.stop_reason", string(answer.StopReason())))
	if info.Status != 0 {
		span.Set(telemetry.Int("pi.status", int64(info.Status)))
	}
	if info.Class != "" {
		span.Set(telemetry.String("pi.error_class", info.Class))
	}
	raw, _ := answer.Get("usage")
	if u, err := message.ParseUsage(raw); err == nil {
		span.Set(telemetry.Int("pi.usage.input", u.Input), telemetry.Int("pi.usage.output", u.Output),
			telemetry.Int("pi.usage.cache_read", u.CacheRead), telemetry.Int("pi.usage.cache_write", u.CacheWrite),
			telemetry.Float("pi.usage.cost", u.Cost.Total))
	}
	span.End(nil)
}
