// Package telemetry is the small interface through which drover tells what it
// does: named spans with attributes (spec §5.8, D42). An adapter may carry them
// to any system; without one they cost a nil check.
//
// Attributes hold names, ids, counts, durations, statuses and usage. They never
// hold prompts, answers, tool arguments or results, file contents, provider
// payloads, headers, handles or credentials.
//
// Import law: standard library only.
package telemetry

// Attr is one attribute; Value is a string, bool, int64 or float64.
type Attr struct {
	Key   string
	Value any
}

// Context starts spans below itself.
type Context interface {
	Start(name string, attrs ...Attr) Span
}

// Span is work in progress; End ends it once, with the error that stopped it.
type Span interface {
	Context
	Set(attrs ...Attr)
	End(err error)
}

// The spans of §5.8.
const (
	SpanRun        = "pi.harness.run"
	SpanCompaction = "pi.harness.compaction"
	SpanNavigation = "pi.harness.navigation"
	SpanCheckpoint = "pi.harness.checkpoint"
	SpanTurn       = "pi.harness.turn"
	SpanStep       = "pi.harness.step"
	SpanTool       = "pi.harness.tool"
	SpanHook       = "pi.harness.hook"
	SpanSleep      = "pi.harness.sleep"
	SpanEvent      = "pi.harness.event_handler"
	SpanWrite      = "pi.session.write"
	SpanRequest    = "pi.ai.request"
)

// String is a text attribute.
func String(key, value string) Attr { return Attr{key, value} }

// Int is a number attribute.
func Int(key string, value int64) Attr { return Attr{key, value} }

// Float is an attribute of an amount.
func Float(key string, value float64) Attr { return Attr{key, value} }

// Noop starts spans that go nowhere.
type Noop struct{}

// Start returns a span that goes nowhere.
func (Noop) Start(string, ...Attr) Span { return noopSpan{} }

type noopSpan struct{ Noop }

func (noopSpan) Set(...Attr) {}
func (noopSpan) End(error)   {}

// Off reports that what is told here goes nowhere, so that nobody needs to work it
// out.
func Off(c Context) bool {
	switch c.(type) {
	case Noop, noopSpan:
		return true
	}
	return false
}

// Do runs work inside a span.
func Do(c Context, name string, work func(Span) error, attrs ...Attr) error {
	span := c.Start(name, attrs...)
	err := work(span)
	span.End(err)
	return err
}
