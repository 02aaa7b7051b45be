package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// breakpoint is one kind of place at which a manual drive stops (D43).
type breakpoint struct{ kind, before string }

// breakpoints are all of them: the value of --stop-before.
func breakpoints() []breakpoint {
	return []breakpoint{
		{"hook.before_drive", "the hooks that may refuse a drive pass"},
		{"hook.before_run", "the hooks that add messages to a starting run"},
		{"hook.before_run_end", "the hooks that may give an ending run a follow-up"},
		{"hook.transform_context", "the hooks that change what a request sends"},
		{"hook.before_request", "the hooks that change a request's options"},
		{"hook.before_payload", "the hooks that change a request's body"},
		{"hook.after_response", "the hooks that may replace an answer"},
		{"hook.before_tool", "the hooks that may change or block a tool call"},
		{"hook.after_tool", "the hooks that change a tool's result"},
		{"hook.before_compaction", "the hooks that may supply or decline a compaction"},
		{"hook.before_navigation", "the hooks that may supply or decline a branch summary"},
		{"run.begin", "a run's first context is completed"},
		{"checkpoint.write", "deferred writes are placed"},
		{"checkpoint.steer", "steering messages are placed"},
		{"checkpoint.follow_up", "follow-up messages are placed"},
		{"checkpoint.threshold", "a compaction opens because the context is too long"},
		{"checkpoint.finish", "the run ends"},
		{"assistant.intent", "the intent to ask the model is written"},
		{"assistant.request", "the model is asked"},
		{"assistant.settlement", "the answer is written"},
		{"retry.sleep", "the wait for the next attempt"},
		{"tool.intent", "the intent to run a tool is written"},
		{"tool.execute", "a tool runs"},
		{"tool.settlement", "a tool's outcome is written"},
		{"tool.materialize", "finished results are placed"},
		{"tool.recover_interruption", "an interrupted call is settled as unknown"},
		{"deferred.intent", "the intent to ask for a deferred answer is written"},
		{"deferred.fetch", "the provider is asked for a deferred answer"},
		{"deferred.settlement", "what it said is written"},
		{"deferred.cancel", "the provider is asked to drop a deferred job"},
		{"structural.intent", "the intent to ask for a summary is written"},
		{"structural.request", "a summary is asked for"},
		{"structural.settlement", "the summary's answer is written"},
		{"structural.publish", "the summary is published"},
		{"navigation.commit", "the lane moves"},
		{"recovery.settlement", "an interrupted request is settled"},
		{"cancel.reconcile", "a step of ending a cancelled operation"},
	}
}

func breakpointKinds() []string {
	var kinds []string
	for _, b := range breakpoints() {
		kinds = append(kinds, b.kind)
	}
	return kinds
}

// stopPoint is where a drive stops: before the n-th breakpoint of a kind.
type stopPoint struct {
	kind string
	n    int
}

// parseStopPoint reads KIND or KIND#N.
func parseStopPoint(s string) (stopPoint, error) {
	kind, number, numbered := strings.Cut(s, "#")
	p := stopPoint{kind: kind, n: 1}
	kinds := breakpointKinds()
	if !slices.Contains(kinds, kind) {
		return p, usagef("--stop-before: there is no breakpoint %q; the nearest is %s", escapeLine(kind), nearest(kind, kinds)).
			withHint("see `drover help breakpoints`")
	}
	if numbered {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return p, usagef("--stop-before %s: want KIND#N with N of 1 or more", escapeLine(s))
		}
		p.n = n
	}
	return p, nil
}

func helpBreakpoints(out *printer) error {
	all := breakpoints()
	return out.result(nil, func(o *object) {
		o.array("breakpoints", len(all), func(i int, o *object) {
			o.str("kind", all[i].kind)
			o.str("before", all[i].before)
		})
	}, func(w io.Writer) error {
		if _, err := fmt.Fprint(w, "A manual drive stops at these places, each before what it says.\n\n"); err != nil {
			return err
		}
		for _, b := range all {
			if _, err := fmt.Fprintf(w, "  %-26s %s\n", b.kind, b.before); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintln(w, "\n`drover drive --stop-before KIND#N` stops before the N-th of a kind, --manual before every one.")
		return err
	})
}
