package otel

import (
	"context"
	"fmt"

	attr "go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/drover-run/drover/pkg/telemetry"
)

type span struct {
	ctx    context.Context
	tracer trace.Tracer
	span   trace.Span
}

func begin(ctx context.Context, tracer trace.Tracer, name string, attrs []telemetry.Attr) *span {
	ctx, s := tracer.Start(ctx, name, trace.WithAttributes(attributes(attrs)...))
	return &span{ctx, tracer, s}
}

// Start implements telemetry.Context.
func (s *span) Start(name string, attrs ...telemetry.Attr) telemetry.Span {
	return begin(s.ctx, s.tracer, name, attrs)
}

// Set implements telemetry.Span.
func (s *span) Set(attrs ...telemetry.Attr) { s.span.SetAttributes(attributes(attrs)...) }

// End implements telemetry.Span.
func (s *span) End(err error) {
	if err != nil {
		s.span.SetStatus(codes.Error, fmt.Sprintf("%T", err))
	}
	s.span.End()
}

func attributes(attrs []telemetry.Attr) []attr.KeyValue {
	out := make([]attr.KeyValue, 0, len(attrs))
	for _, a := range attrs {
		switch v := a.Value.(type) {
		case string:
			out = append(out, attr.String(a.Key, v))
		case bool:
			out = append(out, attr.Bool(a.Key, v))
		case int64:
			out = append(out, attr.Int64(a.Key, v))
		case float64:
			out = append(out, attr.Float64(a.Key, v))
		}
	}
	return out
}

func attribute(key, value string) attr.KeyValue { return attr.String(key, value) }
