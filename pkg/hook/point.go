package hook

import "slices"

// Point is an interception point, by its name in spec §5.6.
type Point string

// The interception points.
const (
	BeforeDrive      Point = "before_drive"
	BeforeRun        Point = "before_run"
	BeforeRunEnd     Point = "before_run_end"
	TransformContext Point = "transform_context"
	BeforeRequest    Point = "before_request"
	BeforePayload    Point = "before_payload"
	AfterResponse    Point = "after_response"
	BeforeTool       Point = "before_tool"
	AfterTool        Point = "after_tool"
	BeforeCompaction Point = "before_compaction"
	BeforeNavigation Point = "before_navigation"
)

// Shape is what a program at a point reads and may answer: the names of the fields.
type Shape struct {
	Point  Point
	Event  []string // beside those that every event has
	Answer []string
}

// Shapes are those of all points, in the order in which a run comes to them.
func Shapes() []Shape {
	return []Shape{
		{BeforeDrive, []string{"operation"}, nil},
		{BeforeRun, []string{"prompt"}, []string{"messages"}},
		{BeforeRequest, []string{"model", "step", "attempt", "streamOptions"}, []string{"streamOptions"}},
		{TransformContext, []string{"messages", "systemPrompt"}, []string{"messages", "systemPrompt"}},
		{BeforePayload, []string{"model", "payload"}, []string{"payload"}},
		{AfterResponse, []string{"status", "headers", "message"}, []string{"message"}},
		{BeforeTool, []string{"toolCallId", "toolName", "args"}, []string{"args", "block"}},
		{
			AfterTool,
			[]string{"toolCallId", "toolName", "args", "isError", "usage", "details", "content"},
			[]string{"content", "details", "isError", "usage", "terminate"},
		},
		{BeforeCompaction, []string{"reason", "customInstructions", "preparation"}, []string{"decline", "compaction"}},
		{BeforeNavigation, []string{"targetId", "customInstructions", "preparation"}, []string{"decline", "summary"}},
		{BeforeRunEnd, []string{"messages"}, []string{"followUp"}},
	}
}

// Common are the fields that every event begins with.
func Common() []string { return []string{"hook", "lane", "runId", "sessionId", "cwd"} }

// Points are the names of all points.
func Points() []string {
	var names []string
	for _, s := range Shapes() {
		names = append(names, string(s.Point))
	}
	return names
}

// OfTools reports a point that only comes with a tool call.
func (p Point) OfTools() bool { return p == BeforeTool || p == AfterTool }

// shape finds the shape of a point, which exists.
func (p Point) shape() Shape {
	all := Shapes()
	return all[slices.IndexFunc(all, func(s Shape) bool { return s.Point == p })]
}
