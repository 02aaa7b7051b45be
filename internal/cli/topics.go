package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/drover-run/drover/pkg/model/scripted"
	"github.com/drover-run/drover/pkg/store"
)

// keyRow is what people are told of a configuration key.
type keyRow struct {
	key, flag, fallback, what string
	fileOnly                  bool // no variable sets it
}

func keyRows() []keyRow {
	var rows []keyRow
	for _, s := range settings() {
		rows = append(rows, keyRow{key: s.key, flag: s.flag, fallback: s.fallback, what: s.what})
	}
	return append(rows, documentRows()...)
}

func helpConfig(out *printer) error {
	rows, more, inner := keyRows(), otherVariables(), sections()
	return out.result(nil, func(o *object) {
		o.array("keys", len(rows), func(i int, o *object) {
			o.str("key", rows[i].key)
			o.optStr("variable", rows[i].variable())
			o.optStr("flag", rows[i].flag)
			o.str("default", rows[i].fallback)
			o.str("meaning", rows[i].what)
		})
		o.array("variables", len(more), func(i int, o *object) {
			o.str("name", more[i].name)
			o.str("meaning", more[i].what)
		})
		o.array("sections", len(inner), func(i int, o *object) {
			inner[i].write(o)
		})
	}, func(w io.Writer) error {
		p := &lines{w: w}
		p.line("%s", configIntro)
		for _, r := range rows {
			p.line("  %s  (%s)\n      %s; default: %s", r.key, r.givenBy(), r.what, r.standard())
		}
		p.line("\nVariables that belong to no key:\n")
		for _, v := range more {
			p.line("  %-22s  %s", v.name, v.what)
		}
		for _, s := range inner {
			p.line("")
			s.print(p)
		}
		p.line("\nNO_COLOR, TERM=dumb: no colours. HOME, XDG_CACHE_HOME, XDG_CONFIG_HOME,\nXDG_DATA_HOME, XDG_RUNTIME_DIR: where things lie.")
		return p.err
	})
}

const configIntro = `A flag wins over the environment, that over the file, that over the default.

The file is YAML: $XDG_CONFIG_HOME/drover/config.yaml, which is
~/.config/drover/config.yaml unless that variable is set, or the one that --config
or DROVER_CONFIG names. It is never looked for in the working directory, and one
that others can write is refused. A key with a dot may be nested:

  repo: ~/sessions
  retry: {max_retries: 5}

In the file and the environment ~/ is the home; a relative folder starts at the
file's own, in the environment at the working directory. Durations are like 90s
or 1h30m.
`

// variable sets the key, "" when none does.
func (r keyRow) variable() string {
	if r.fileOnly {
		return ""
	}
	return envName(r.key)
}

// givenBy names the variable of a key, and its flag where there is one.
func (r keyRow) givenBy() string {
	switch {
	case r.fileOnly:
		return "in the file only"
	case r.flag == "":
		return envName(r.key)
	}
	return envName(r.key) + ", --" + r.flag
}

func (r keyRow) standard() string {
	switch {
	case r.key == "repo":
		return "$XDG_DATA_HOME/drover, or ~/.local/share/drover without that variable"
	case r.fallback == "":
		return "none"
	}
	return r.fallback
}

// sessionForm is a way to name a session.
type sessionForm struct{ form, what string }

func sessionForms() []sessionForm {
	return []sessionForm{
		{"ID", "the full id; it wins over every other reading"},
		{"ENDING", fmt.Sprintf("the end of an id, %d characters or more, that only one has; a terminal shows the last 8", store.MinShortID)},
		{"BEGINNING", fmt.Sprintf("the same of its beginning, %d or more; sessions of one minute begin alike", store.MinShortID)},
		{"name:TEXT", "the session with exactly this name (`drover name`)"},
		{"@last", "the session that changed last, by the time of its file"},
		{"PATH", "a file: contains a /, or ends in .db or .jsonl; it may lie anywhere"},
	}
}

func helpSessions(out *printer) error {
	forms := sessionForms()
	return out.result(nil, func(o *object) {
		o.array("forms", len(forms), func(i int, o *object) {
			o.str("form", forms[i].form)
			o.str("meaning", forms[i].what)
		})
	}, func(w io.Writer) error {
		p := &lines{w: w}
		p.line("SESSION, the first argument of a command that works on one, is any of these:\n")
		for _, f := range forms {
			p.line("  %-10s  %s", f.form, f.what)
		}
		p.line(`
What matches nothing, or several, ends with %d; the candidates are listed.

DROVER_SESSION stands in where a command is given no argument at all, also for
`+"`drover delete`"+`: unset it when you are done. With any other argument, such as a text or
an entry, the session is named, too.`, exitNotFound)
		return p.err
	})
}

func helpScripts(out *printer) error {
	fields := scripted.Fields()
	return out.result(nil, func(o *object) {
		o.array("fields", len(fields), func(i int, o *object) {
			o.str("of", fields[i].Of)
			o.str("name", fields[i].Name)
			o.str("meaning", fields[i].What)
		})
		o.str("example", scripted.Example())
	}, func(w io.Writer) error {
		p := &lines{w: w}
		p.line("%s%s", scriptsIntro, strings.TrimSuffix(indent(scripted.Example(), "  "), "  "))
		of := ""
		for _, f := range fields {
			if f.Of != of {
				of = f.Of
				p.line("%s has", of)
			}
			p.line("  %-16s  %s", f.Name, f.What)
		}
		p.line("\nWhat is not given has the value in brackets, or is none.")
		return p.err
	})
}

const scriptsIntro = `The model scripted/FILE answers from a script, YAML or JSON, without any network.
Each request takes the next response, and has used it up even if it is killed.
How many are used is kept in FILE.state (in the folder DROVER_SCRIPT_STATE when
that is set), which all sessions and processes share: remove it, or change the
script, to begin with the first response again. A request beyond the last one
fails with "has no response N". scripted/echo needs no file: it answers with the
last message, and to a request for a summary with the words of that request.

`
