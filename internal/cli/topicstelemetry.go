package cli

import (
	"io"

	"github.com/drover-run/drover/pkg/telemetry"
)

// telemetryVariables are those of OpenTelemetry that say where spans go.
func telemetryVariables() []variable {
	return []variable{
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "where spans are sent, over OTLP: the collector's address, such as http://localhost:4318"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "the same, with the path that takes spans, such as http://localhost:4318/v1/traces"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "headers of these requests, such as a key; no child process gets it"},
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf (the default) or http/json"},
		{"OTEL_TRACES_EXPORTER", "otlp: spans are sent although no address is given, to localhost; none: they are not"},
		{"OTEL_SDK_DISABLED", "true: no spans, in no file either"},
		{"OTEL_SERVICE_NAME", "the name of the service, instead of drover"},
		{"OTEL_RESOURCE_ATTRIBUTES", "attributes of all spans, as NAME=VALUE with commas between"},
		{"TRACEPARENT", "the trace that spans belong to, of who starts drover; with TRACESTATE"},
	}
}

// spanRows are the spans.
func spanRows() []variable {
	return []variable{
		{telemetry.SpanRun, "a drive pass of a run; " + telemetry.SpanCompaction + ", " + telemetry.SpanNavigation + ": of the other operations"},
		{telemetry.SpanTurn, "a turn of a run: an answer and the tools it asks for"},
		{telemetry.SpanStep, "an attempt at an answer or a summary; " + telemetry.SpanSleep + ": the wait before the next"},
		{telemetry.SpanRequest, "a request to a model, with its status, tokens and cost"},
		{telemetry.SpanTool, "a tool call; " + telemetry.SpanHook + ": a hook"},
		{telemetry.SpanCheckpoint, "a checkpoint of a run; " + telemetry.SpanWrite + ": a commit to the session"},
	}
}

const telemetryExample = `telemetry:
  file: ~/drover-spans.json
`

func helpTelemetry(out *printer) error {
	rows, spans := telemetryVariables(), spanRows()
	write := func(all []variable) func(int, *object) {
		return func(i int, o *object) {
			o.str("name", all[i].name)
			o.str("meaning", all[i].what)
		}
	}
	return out.result(nil, func(o *object) {
		o.array("variables", len(rows), write(rows))
		o.array("spans", len(spans), write(spans))
		o.str("example", telemetryExample)
	}, func(w io.Writer) error {
		p := &lines{w: w}
		p.line("%s\n\n%s%s\n\n%sThe variables are\n", telemetryIntro, example(telemetryExample), telemetryMore, example(telemetryCommand))
		for _, v := range rows {
			p.line("  %s\n%s", v.name, wrap(v.what, "      "))
		}
		p.line("\nThe spans are\n")
		for _, s := range spans {
			p.line("  %s\n%s", s.name, wrap(s.what, "      "))
		}
		p.line("\n%s", telemetryEnd)
		return p.err
	})
}

const telemetryIntro = `Operations can be followed as spans: what happened, how long it took, and what it
cost. They hold names, ids, times, counts and costs, and nothing of what was said: no
prompt, no answer, no argument or result of a tool, no key. They go to a file, each as
a JSON object, when the configuration names one:`

const telemetryMore = `and over OTLP to a collector, when the environment says where it is:`

const telemetryCommand = `OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 drover prompt --new hello
`

const telemetryEnd = `Nothing is opened or sent before an operation begins. Spans that cannot be delivered
are lost, which is told once and stops nothing. The other variables of the OTLP
exporter, such as OTEL_EXPORTER_OTLP_TIMEOUT and _CERTIFICATE, mean what they say.`
