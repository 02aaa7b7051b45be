package cli

import (
	"io"
	"strings"

	"github.com/drover-run/drover/pkg/hook"
)

// hookPoint is what people are told of an interception point.
type hookPoint struct {
	point        hook.Point
	when, effect string
	again        string // when it runs again
}

func hookPoints() []hookPoint {
	return []hookPoint{
		{hook.BeforeDrive, "once a drive pass, before anything else", "a failure rejects the pass", "with every pass"},
		{hook.BeforeRun, "while a run starts", "messages are added to the prompt", "until the run has started"},
		{hook.BeforeRequest, "before each request", "streamOptions (maxTokens, temperature, deferred) are changed, field by field", "with every attempt and poll"},
		{hook.TransformContext, "before each request of the assistant", "messages and systemPrompt replace what this request sends; the session keeps its own", "with every attempt and poll"},
		{hook.BeforePayload, "when a provider is about to send a request", "payload replaces its body, in the provider's own form", "with every attempt and poll"},
		{hook.AfterResponse, "when an answer has ended, before it is kept", "message replaces it; what has streamed was shown, and saved until now, as it came", "once an answer, unless an abort comes first"},
		{hook.BeforeTool, "before a tool call, its arguments checked", `args replace the arguments; block {"reason","terminate"} refuses the call, and with terminate ends the run`, "once a call that is executed"},
		{hook.AfterTool, "after a tool call, before its result is kept", "content, details, isError, usage and terminate replace those of the result, one by one", "once a result, unless an abort comes first"},
		{hook.BeforeCompaction, "before a compaction asks for its summary", `decline true ends it; compaction {"summary","details","usage"} stands in for it`, "until a summary is begun"},
		{hook.BeforeNavigation, "before a navigation asks for its summary", `decline true ends it; summary {"summary","details","usage"} stands in for it`, "until a summary is begun"},
		{hook.BeforeRunEnd, "when a run would end, not after a failure or an abort", "followUp, a text, goes on with it as a user message", "at each such end"},
	}
}

func helpHooks(out *printer) error {
	points, shapes := hookPoints(), hook.Shapes()
	return out.result(nil, func(o *object) {
		o.strs("common", hook.Common())
		o.array("hooks", len(points), func(i int, o *object) {
			o.str("name", string(points[i].point))
			o.str("when", points[i].when)
			o.strs("event", shapes[i].Event)
			o.strs("answer", shapes[i].Answer)
			o.str("effect", points[i].effect)
			o.str("again", points[i].again)
		})
		o.array("variables", len(hookVariables()), func(i int, o *object) {
			o.str("name", hookVariables()[i].name)
			o.str("meaning", hookVariables()[i].what)
		})
	}, func(w io.Writer) error {
		p := &lines{w: w}
		p.line("%s", hooksIntro)
		for i, h := range points {
			p.line("  %s: %s", h.point, h.when)
			p.line("      reads    %s", strings.Join(shapes[i].Event, ", "))
			if shapes[i].Answer != nil {
				p.line("      answers  %s", strings.Join(shapes[i].Answer, ", "))
			}
			p.line("      %s", h.effect)
			p.line("      runs again: %s", h.again)
		}
		p.line("%s", hooksMore)
		for _, v := range hookVariables() {
			p.line("  %-20s  %s", v.name, v.what)
		}
		p.line("%s", hooksEnd)
		return p.err
	})
}

// hookVariables are those that hook programs find.
func hookVariables() []variable {
	return []variable{
		{"DROVER_HOOK", "the name of the hook, such as before_tool"},
		{"DROVER_SESSION_ID", "the session's id"},
		{"DROVER_LANE", "the lane"},
		{"DROVER_OPERATION_ID", "the operation's id: of one that is driven again it is the same"},
	}
}

const hooksIntro = `Hooks are programs that drover runs at eleven points of an operation. They see what
is about to happen, and may change or refuse it. The configuration names them:

  hooks:
    guard:                      # a name of yours: letters, digits, _ and -
      on: before_tool           # one of the points below
      argv: [./guard.sh]        # a path from the file's folder, or a name in PATH
      required: false           # see below
      timeout: 30s
      tools: [write, edit]      # of before_tool and after_tool; all without it
      cwd: ~/hooks              # the session's folder without it
      env: {NAME: value}
      pass_env: [MY_API_KEY]    # variables with keys are passed only so

Programs of one point run one after the other, in the order of the file, each on
what the one before has made of it. A program reads one line of JSON on its stdin,
with hook, lane, runId (the operation), sessionId, cwd (the session's folder) and
the fields of its point. It answers with a JSON object on stdout; nothing at all, or
{}, changes nothing. The answer may be the event itself, changed, so that a filter
such as sed is a hook; a field that is unknown is a failure. Messages and blocks are
those of ` + "`drover show --context --json`" + `.
`

const hooksMore = `
A program fails when it ends with another code than 0, takes too long or answers with
what it must not; the end of its stderr is the reason, so it should hold no secrets.
A failure is told (on stderr, in ndjson as handler_error) and the program skipped;
but one of before_drive rejects the pass, and one of before_tool blocks the call.

With required: true nothing is skipped:
  after_tool                   the model gets an error in place of the result, which
                               nobody sees; of the tools in question no progress is
                               shown or saved before the hook. Files that a tool wrote,
                               such as the full output of bash, are not touched
  before_request, transform_context, before_payload
                               the request is not sent and fails, without repetition;
                               a deferred answer stays pending
  all others                   the pass is rejected with 8 hook_failed, and nothing is
                               written; ` + "`drover drive`" + ` goes on once the hook works

An abort lets a program that runs come to its end, and ends one that has not after
three seconds. A kill in the middle of a hook ends its program too. The next drive
runs the hook again where its point says so above; so what a hook does outside should
be keyed by DROVER_OPERATION_ID. What a program leaves running in the background is
ended with it. Its environment is drover's own without the variables that hold keys, and with
`

const hooksEnd = `
docs/examples/hooks in the source has programs to begin with: block writes outside a
folder, redact what tools print, add context, page a human.`

func helpSystemPrompt(out *printer) error {
	return out.result(nil, func(o *object) {
		o.array("placeholders", len(placeholders()), func(i int, o *object) {
			o.str("name", placeholders()[i].name)
			o.str("meaning", placeholders()[i].what)
		})
	}, func(w io.Writer) error {
		p := &lines{w: w}
		p.line("%s", systemPromptIntro)
		for _, v := range placeholders() {
			p.line("  %-9s  %s", v.name, v.what)
		}
		p.line("%s", systemPromptEnd)
		return p.err
	})
}

// placeholders are what a system prompt may hold.
func placeholders() []variable {
	return []variable{
		{"{{date}}", "the day on which the operation began, as 2026-01-31"},
		{"{{cwd}}", "the session's folder"},
		{"{{tools}}", "the names of the lane's tools, or none"},
	}
}

const systemPromptIntro = `Every request of a run begins with a system prompt. It has three parts, each left out
when it is empty, with a blank line between:

1. The text of system_prompt, or of the file that system_prompt_file names (from the
   configuration's folder; 1 MiB at most). In it these are replaced, all else stays:
`

const systemPromptEnd = `
2. With context_files: true the text of every AGENTS.md in the session's folder and
   those above it, the nearest last: up to the folder that holds .git, or else to the
   home, or else of the session's folder alone. A list of names, such as
   [AGENTS.md, CLAUDE.md], means those, and a name by itself that one. Links that lead
   out of that reach, files of more than 64 KiB and what is no text are told and left
   out.

3. For a lane that has the tool read: name, description and path of each skill of the
   folders in skills, but of those with disable-model-invocation.

Files are read once a process, so that the prompt stays the same through a run, and
providers find what they have cached. ` + "`drover show SESSION --context --json`" + ` has the
prompt as systemPrompt; a transform_context hook may change it.`
