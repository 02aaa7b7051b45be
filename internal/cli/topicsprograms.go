package cli

import (
	"io"
	"strings"
)

// programRows are the fields of programs.*.
func programRows() []keyRow {
	return []keyRow{
		{key: "description", what: "what the model is told of the tool"},
		{key: "argv", what: "the program and its arguments; with a slash in it a path, which starts where the file lies, without one a name that is looked up in PATH"},
		{key: "schema", fallback: "no arguments", what: "the JSON schema of the arguments, of type object; draft 2020-12 or 7"},
		{key: "schema_file", what: "the file that holds it instead, as JSON"},
		{key: "output", fallback: "text", what: "what the program prints: text, or a result as json"},
		{key: "replay", fallback: "never", what: "whether a call that was interrupted runs again: never or safe"},
		{key: "timeout", what: "how long a call may take"},
		{key: "cwd", fallback: "the session's working directory", what: "where the program runs"},
		{key: "env", what: "variables that it gets beside the inherited ones, as NAME: VALUE"},
		{key: "pass_env", what: "inherited variables to pass on though they hold keys of models"},
	}
}

// programStreams are the ways between drover and a program.
func programStreams() []shape {
	return []shape{
		{"stdin", "the arguments, JSON on one line, which fit the schema"},
		{"stdout, output text", "the result: its end, 2,000 lines or 50 KiB; what is longer is kept, up to 256 MiB, in a file that the result names, and the result tells what is cut"},
		{"stdout, output json", `a result {"content", "details", "isError", "usage", "addedToolNames", "terminate"}, at most 4 MiB: content is a text or a list of blocks, {"type":"text","text"} or {"type":"image","data","mimeType"}; details is an object for scripts, which models do not see; with terminate true the run ends without another answer. Only content must be there`},
		{"stderr", "what the model is told beside the output when the call fails, the last 8 KiB; kept in the details otherwise"},
		{"descriptor 3", `progress, one JSON object a line, {"content", "details", "checkpoint"}: what is shown meanwhile. With checkpoint true it is kept in the session: a call that is interrupted for good has the latest as its result. A line that is none is told in the result's details`},
		{"exit code", "another than 0 makes the result an error"},
	}
}

const programExample = `programs:
  run_tests:
    description: Run the tests of one package, or of all, and return what fails.
    argv: [./run-tests]
    schema:
      type: object
      properties:
        package: {type: string, pattern: '^\./', description: such as ./pkg/store}
    replay: safe
    timeout: 10m
`

const programScript = `#!/bin/sh
package=$(jq -r '.package // "./..."')
printf '{"content":"testing %s"}\n' "$package" >&3
exec go test "$package"
`

const memoScript = `order=$(drover tool memo get order) || {
  order=$(curl -sf -H "Idempotency-Key: $DROVER_TOOL_CALL_ID" -d @- https://shop.example/orders)
  drover tool memo set order "$order"
}
`

func helpPrograms(out *printer) error {
	rows, streams, variables := programRows(), programStreams(), programVariables()
	return out.result(nil, func(o *object) {
		o.array("fields", len(rows), func(i int, o *object) {
			o.str("name", rows[i].key)
			o.str("default", rows[i].fallback)
			o.str("meaning", rows[i].what)
		})
		o.array("streams", len(streams), func(i int, o *object) {
			o.str("name", streams[i].name)
			o.str("meaning", streams[i].what)
		})
		o.array("variables", len(variables), func(i int, o *object) {
			o.str("name", variables[i].name)
			o.str("meaning", variables[i].what)
		})
		o.str("example", programExample)
		o.str("script", programScript)
	}, func(w io.Writer) error {
		p := &lines{w: w}
		p.line("%s", programsIntro)
		p.line("%sand beside it the file run-tests, which may be executed:\n\n%s", example(programExample), strings.TrimSuffix(example(programScript), "\n"))
		p.line("A program is described by\n")
		for _, r := range rows {
			what := r.what
			if r.fallback != "" {
				what += "; default: " + r.fallback
			}
			p.line("  %s\n%s", r.key, wrap(what, "      "))
		}
		p.line("\nIt is called with\n")
		for _, s := range streams {
			p.line("  %s\n%s", s.name, wrap(s.what, "      "))
		}
		p.line("\nIts environment is drover's without the variables that hold keys of models, and with\n")
		for _, v := range variables {
			p.line("  %-20s  %s", v.name, v.what)
		}
		p.line("\n%s\n\n%s", programsMemos, strings.TrimSuffix(example(memoScript), "\n\n"))
		return p.err
	})
}

const programsIntro = `A program that the configuration describes is a tool: lanes have it once their
tools name it, such as with --tools. It ends with its call, with all that it has
started: when it is aborted, at its timeout, and when drover itself is killed. A
program that is not there or cannot be executed, and a schema that cannot be checked,
refuse the commands that may call tools (2); drover doctor tells.
`

const programsMemos = `A call that was interrupted runs again with replay safe, with the same arguments and
the same DROVER_TOOL_CALL_ID. What it has done by then it can keep in memos: drover
tool memo set is durable when it returns, and drover tool memo get ends with 4 when
there is none. Killed between the deed and the memo a program does the deed again,
so that whoever is asked should know the call by its id. What a killed drover leaves
is ended within a second or so, in which the old and the new call may overlap.`

// example sets a text off, with an empty line behind it.
func example(text string) string {
	return indent(strings.TrimSuffix(text, "\n"), "  ") + "\n\n"
}

// wrap breaks a text into lines of at most 86 characters with an indent.
func wrap(text, indent string) string {
	const most = 86
	var b strings.Builder
	line := indent
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == indent:
			line += word
		case len(line)+1+len(word) <= most:
			line += " " + word
		default:
			b.WriteString(line + "\n")
			line = indent + word
		}
	}
	return b.String() + line
}
