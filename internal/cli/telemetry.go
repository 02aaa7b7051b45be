package cli

import (
	"context"
	"time"

	"github.com/drover-run/drover/internal/otel"
	"github.com/drover-run/drover/pkg/telemetry"
)

// flushTime is how long the end of a command waits for its spans to be delivered.
const flushTime = 5 * time.Second

// newSpans reads where telemetry goes. Nothing is opened or sent before there is
// something to tell; what can not be delivered is told once, and stops nothing.
func (f *factory) newSpans() (telemetry.Context, error) {
	c, err := f.config()
	if err != nil {
		return nil, err
	}
	out, err := f.out()
	if err != nil {
		return nil, err
	}
	to, flush, err := otel.Context(otel.Options{
		Env: f.env, File: c.telemetryFile, Version: readBuild().version,
		Report: func(err error) { out.warn("telemetry_incomplete", "%v", err) },
	})
	if err != nil {
		return nil, configf("%v", err)
	}
	f.flushSpans = func() {
		ctx, cancel := context.WithTimeout(context.Background(), flushTime)
		defer cancel()
		flush(ctx)
	}
	return to, nil
}
