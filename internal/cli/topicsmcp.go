package cli

import "io"

// mcpRows are the fields of mcp.*.
func mcpRows() []keyRow {
	return []keyRow{
		{key: "argv", what: "the server's program and its arguments, which speaks over stdin and stdout; with a slash in it a path, which starts where the file lies"},
		{key: "url", what: "where it is reached over streamable HTTP instead"},
		{key: "cwd", fallback: "the session's working directory", what: "where the program runs"},
		{key: "env", what: "variables that it gets beside the inherited ones, as NAME: VALUE"},
		{key: "pass_env", what: "inherited variables to pass on though they hold keys of models"},
		{key: "headers", what: "headers of every request to the url, as NAME: VALUE"},
		{key: "ca_file", what: "a PEM file of authorities to trust beside the system's"},
		{key: "start_timeout", fallback: "1m", what: "how long it may take until it has listed its tools"},
		{key: "timeout", what: "how long a call may take"},
		{key: "replay", what: "per tool, by the server's name for it: whether a call that was interrupted runs again, never or safe"},
		{key: "trust_annotations", fallback: "false", what: "whether tools that the server declares read-only or idempotent count as safe where replay does not say"},
		{key: "rename", what: "other names for tools, as NAME: OTHER: models know SERVER__OTHER then"},
	}
}

const mcpExample = `mcp:
  files:
    argv: [npx, -y, "@modelcontextprotocol/server-filesystem", /srv/docs]
    replay: {read_file: safe}
  tickets:
    url: https://tickets.example/mcp
    start_timeout: 10s
`

func helpMCP(out *printer) error {
	rows := mcpRows()
	return out.result(nil, func(o *object) {
		o.array("fields", len(rows), func(i int, o *object) {
			o.str("name", rows[i].key)
			o.str("default", rows[i].fallback)
			o.str("meaning", rows[i].what)
		})
		o.str("example", mcpExample)
	}, func(w io.Writer) error {
		p := &lines{w: w}
		p.line("%s\n\n%sA server is described by\n", mcpIntro, example(mcpExample))
		for _, r := range rows {
			what := r.what
			if r.fallback != "" {
				what += "; default: " + r.fallback
			}
			p.line("  %s\n%s", r.key, wrap(what, "      "))
		}
		return p.err
	})
}

const mcpIntro = `Servers of the Model Context Protocol offer tools to models. A lane has a tool once
its configuration names it, SERVER__TOOL: with --tools, or in the key tools.
"drover mcp list" starts the servers and lists those names.

A server starts when a request is about to offer one of its tools, and no earlier:
commands that run nothing start none. A program that is not there or cannot be
executed refuses the commands that may call tools (2). One that does not start
refuses the prompt (8 missing_identities), and has a run that was accepted before
wait for it (75). When it dies, the call that it was at is an error that the model
sees, and the next call starts it again. It ends with the command; a program ends
with drover whatever happens, and with it all that it started.

An interrupted call is not repeated, unless the configuration says that it may be.`
