package cli

import (
	"io"
	"strings"

	"github.com/drover-run/drover/pkg/store"
)

// foreignVariables are those of the system that drover heeds.
func foreignVariables() []variable {
	return []variable{
		{"HOME", "where ~/.config, ~/.local/share and ~/.cache lie"},
		{"XDG_CONFIG_HOME", "holds drover/config.yaml"},
		{"XDG_DATA_HOME", "holds drover, the sessions, unless repo is set"},
		{"XDG_CACHE_HOME", "holds drover, the index of `drover search`"},
		{"XDG_RUNTIME_DIR", "holds drover, the sockets of sessions that are driven"},
		{"TMPDIR", "holds the sockets without that"},
		{"ANTHROPIC_API_KEY", "the key for the models anthropic/*"},
		{"OPENAI_API_KEY", "the key for the models openai/*"},
		{"HTTPS_PROXY", "the proxy of requests to models, HTTP_PROXY that of plain ones"},
		{"NO_PROXY", "the hosts that are reached without"},
		{"NO_COLOR", "no colours"},
		{"TERM", "dumb: no colours"},
	}
}

func helpEnvironment(out *printer) error {
	all := otherVariables()
	for _, r := range keyRows() {
		if name := r.variable(); name != "" {
			all = append(all, variable{name, "the key " + r.key + ": " + r.what})
		}
	}
	all = append(append(all, foreignVariables()...), telemetryVariables()...)
	return out.result(nil, func(o *object) {
		o.array("variables", len(all), func(i int, o *object) {
			o.str("name", all[i].name)
			o.str("meaning", all[i].what)
		})
	}, func(w io.Writer) error {
		p := &lines{w: w}
		p.line("A variable wins over the configuration file, a flag over both; an empty one is as\ngood as none. `drover help configuration` tells of the keys.\n")
		for _, v := range all {
			p.line("  %s\n      %s", v.name, v.what)
		}
		p.line(`
A variable that is nearly one of these is told and does nothing. The processes that
tools start do not get the variables that hold keys of models.`)
		return p.err
	})
}

// shape is a form in which something is written.
type shape struct{ name, what string }

func resultShapes() []shape {
	return []shape{
		{"text", "for people, and for programs that want one thing, such as an id"},
		{"json", "exactly one document on stdout, with .exit.code and .exit.name; a command over several items answers {\"items\":[...],\"totals\":{...}}; where a signal ends compact-file, delete, migrate or verify, .totals.notDone counts the sessions that are left"},
		{"ndjson", "one object a line as things happen; the last one is {\"type\":\"result\",...} with the document's fields"},
		{"error", "of json and ndjson, one line on stderr: {\"type\":\"error\",\"code\",\"message\",\"exit\",\"hint\",\"details\"}; code is for scripts, the text is not"},
	}
}

func storageShapes() []shape {
	return []shape{
		{"sqlite", "ID.db, one database a session; ID.db-wal beside it holds the newest commits, and belongs to it"},
		{"jsonl", "ID.jsonl, a header line, then one line a commit; ID.jsonl.lock beside it is its lock"},
		{"legacy", "a coding agent's session file, version 1 to 3: read as it is, imported by `drover import-v3`"},
	}
}

func helpFormats(out *printer) error {
	results, files := resultShapes(), storageShapes()
	write := func(all []shape) func(int, *object) {
		return func(i int, o *object) {
			o.str("name", all[i].name)
			o.str("meaning", all[i].what)
		}
	}
	return out.result(nil, func(o *object) {
		o.array("results", len(results), write(results))
		o.array("files", len(files), write(files))
		o.int("format", store.Format)
		o.int("storageVersion", store.StorageVersion)
	}, func(w io.Writer) error {
		p := &lines{w: w}
		p.line("Results, chosen with --output (or --json):\n")
		print := func(all []shape) {
			for _, s := range all {
				p.line("  %-7s %s", s.name, strings.ReplaceAll(s.what, "; ", ";\n          "))
			}
		}
		print(results)
		p.line("\nTimes are Unix milliseconds. Entries and messages are printed as they are stored, byte\nfor byte.\n\nSession files, of format %d and storage version %d:\n", store.Format, store.StorageVersion)
		print(files)
		return p.err
	})
}
