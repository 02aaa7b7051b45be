// Package otel carries drover's spans to OpenTelemetry: over OTLP/HTTP as the
// standard OTEL_* variables say, and to a file (spec §5.8, D42).
//
// Spans hold what pkg/telemetry allows: names, ids, counts, statuses, usage. Of an
// error only its type is told, since its text may quote what a user or a model
// said. Nothing is set up before the first span.
//
// Import law: pkg/telemetry and OpenTelemetry.
package otel

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/drover-run/drover/pkg/telemetry"
)

// Options say where spans go.
type Options struct {
	// Env reads the environment; the exporter itself reads the process's.
	Env func(name string) string
	// File gets every span as a JSON object; it is appended to, and made with mode
	// 0600. "" is none.
	File string
	// Version is the program's.
	Version string
	// Report is told, once, that spans could not be delivered, or not all that was asked
	// for.
	Report func(error)
}

// The variables that say where OTLP goes: for all signals, to which the path of one is
// added, and for spans alone.
const (
	endpointOfAll   = "OTEL_EXPORTER_OTLP_ENDPOINT"
	endpointOfSpans = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
)

// defaultEndpoint is that of the standard; the exporter's own would be encrypted.
const defaultEndpoint = "http://localhost:4318/v1/traces"

// overHTTP tells whether the environment asks for OTLP: by name, or by saying
// where to. The error is what it asks for and does not get, which stops nothing.
func (o Options) overHTTP() (bool, error) {
	asked := false
	var bad error
	switch names := o.value("OTEL_TRACES_EXPORTER"); names {
	case "":
		asked = o.value(endpointOfAll) != "" || o.value(endpointOfSpans) != ""
	default:
		for name := range strings.SplitSeq(names, ",") {
			switch strings.TrimSpace(name) {
			case "otlp":
				asked = true
			case "none", "":
			default:
				bad = fmt.Errorf("OTEL_TRACES_EXPORTER=%s: there are otlp and none", names)
			}
		}
	}
	if wrong := o.checkEndpoint(); asked && wrong != nil {
		return false, wrong
	}
	return asked, bad
}

// endpoint is where OTLP goes, and the variable that says so, "" for none.
func (o Options) endpoint() (name, at string) {
	for _, name := range []string{endpointOfSpans, endpointOfAll} {
		if at := o.value(name); at != "" {
			return name, at
		}
	}
	return "", defaultEndpoint
}

// checkEndpoint refuses an address that the exporter would silently do without.
func (o Options) checkEndpoint() error {
	name, at := o.endpoint()
	u, err := url.Parse(at)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		return nil
	}
	return fmt.Errorf("%s: want an address that begins with http:// or https://, such as http://localhost:4318", name)
}

func (o Options) value(name string) string { return strings.TrimSpace(o.Env(name)) }

// Context returns where to tell spans, and what delivers those that wait. Without
// a file and with nothing in the environment nothing is ever delivered. The error
// says what of the environment can not be done.
func Context(o Options) (telemetry.Context, func(context.Context), error) {
	off := func(context.Context) {}
	if strings.EqualFold(o.value("OTEL_SDK_DISABLED"), "true") {
		return telemetry.Noop{}, off, nil
	}
	t := &tracing{options: o}
	var unmet error
	if t.overHTTP, unmet = o.overHTTP(); unmet != nil {
		t.report(unmet)
	}
	if o.File == "" && !t.overHTTP {
		return telemetry.Noop{}, off, nil
	}
	if t.overHTTP {
		if err := o.checkProtocol(); err != nil {
			return telemetry.Noop{}, off, err
		}
	}
	return t, t.flush, nil
}

func (o Options) checkProtocol() error {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		switch v := o.value(name); v {
		case "":
			continue
		case "http/protobuf", "http/json":
			return nil
		default:
			return fmt.Errorf("%s=%s: spans are sent as http/protobuf or http/json", name, v)
		}
	}
	return nil
}

// tracing is a provider that is made when the first span starts.
type tracing struct {
	options  Options
	overHTTP bool
	once     sync.Once
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	parent   context.Context
	reported sync.Once
}

func (t *tracing) start() {
	ctx := context.Background()
	options := []sdk.TracerProviderOption{sdk.WithResource(t.resource(ctx))}
	for _, open := range []func(context.Context) (sdk.SpanExporter, error){t.http, t.file} {
		exporter, err := open(ctx)
		if err != nil {
			t.report(err)
		} else if exporter != nil {
			options = append(options, sdk.WithBatcher(&reporting{exporter, t.report}))
		}
	}
	t.provider = sdk.NewTracerProvider(options...)
	t.tracer = t.provider.Tracer("github.com/drover-run/drover")
	// Who started us may have a trace that ours belongs to.
	t.parent = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{
		"traceparent": t.options.Env("TRACEPARENT"), "tracestate": t.options.Env("TRACESTATE"),
	})
}

func (t *tracing) resource(ctx context.Context) *resource.Resource {
	// What the environment says comes last and wins. An unreadable part of it is
	// left out.
	r, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute("service.name", "drover"), attribute("service.version", t.options.Version),
	), resource.WithFromEnv())
	if err != nil {
		t.report(err)
	}
	return r
}

func (t *tracing) http(ctx context.Context) (sdk.SpanExporter, error) {
	if !t.overHTTP {
		return nil, nil
	}
	options := []otlptracehttp.Option{otlptracehttp.WithProxy(sameCollector)}
	if name, at := t.options.endpoint(); name == "" {
		options = append(options, otlptracehttp.WithEndpointURL(at))
	}
	return otlptracehttp.New(ctx, options...)
}

// sameCollector is the proxy of a request, and refuses one that a redirect asks for:
// the headers that the environment gives, which may hold a key, would go along.
func sameCollector(r *http.Request) (*url.URL, error) {
	if r.Response != nil {
		return nil, fmt.Errorf("the collector redirects to %s, which is not followed: name the address that it has in %s", r.URL.Host, endpointOfAll)
	}
	return http.ProxyFromEnvironment(r)
}

func (t *tracing) file(context.Context) (sdk.SpanExporter, error) {
	if t.options.File == "" {
		return nil, nil
	}
	f, err := os.OpenFile(t.options.File, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return stdouttrace.New(stdouttrace.WithWriter(f))
}

// report tells the first failure, on one line: a batch fails span by span.
func (t *tracing) report(err error) {
	t.reported.Do(func() {
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%s did not take them in time", t.collector())
		}
		first, _, _ := strings.Cut(err.Error(), "\n")
		t.options.Report(fmt.Errorf("telemetry: %s", first))
	})
}

// collector names where spans go over the network, without what may be a key.
func (t *tracing) collector() string {
	_, at := t.options.endpoint()
	u, err := url.Parse(at)
	if err != nil || u.Host == "" {
		return "the collector"
	}
	return "the collector at " + u.Host
}

// Start implements telemetry.Context.
func (t *tracing) Start(name string, attrs ...telemetry.Attr) telemetry.Span {
	t.once.Do(t.start)
	return begin(t.parent, t.tracer, name, attrs)
}

// flush delivers what waits, as long as the context lasts.
func (t *tracing) flush(ctx context.Context) {
	if t.provider == nil {
		return
	}
	if err := t.provider.ForceFlush(ctx); err != nil {
		t.report(err)
	}
}

// reporting tells failed deliveries to us rather than to the process's log.
type reporting struct {
	sdk.SpanExporter
	report func(error)
}

// ExportSpans delivers a batch; one that fails is lost, and told.
func (r *reporting) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if err := r.SpanExporter.ExportSpans(ctx, spans); err != nil && !errors.Is(err, context.Canceled) {
		r.report(err)
	}
	return nil
}
