package cli

import (
	"slices"
	"strings"

	"github.com/drover-run/drover/pkg/tool/program"
)

// variable is an environment variable that drover reads, and what it is for.
type variable struct{ name, what string }

// otherVariables are those that belong to no configuration key.
func otherVariables() []variable {
	return []variable{
		{"DROVER_CONFIG", "the configuration file"},
		{"DROVER_SESSION", "the session, where a command is given no argument at all"},
		{"DROVER_SCRIPT_STATE", "the folder that keeps FILE.state of scripted models"},
	}
}

// programVariables are those that drover sets for programs that are tools.
func programVariables() []variable {
	return []variable{
		{program.EnvSession, "the session's id"},
		{program.EnvLane, "the lane"},
		{program.EnvOperation, "the operation's id"},
		{program.EnvCall, "the id of the call: of a call that runs again it is the same"},
		{program.EnvSocket, "where `drover tool memo` reaches the call, as long as it runs"},
		{program.EnvToken, "what it shows there"},
	}
}

// variableNames are all variables that begin with DROVER_ and mean something.
func variableNames() []string {
	var names []string
	for _, r := range keyRows() {
		if name := r.variable(); name != "" {
			names = append(names, name)
		}
	}
	for _, v := range slices.Concat(otherVariables(), programVariables(), hookVariables()) {
		names = append(names, v.name)
	}
	return names
}

// fileKey is the key that a variable is named after although only the file can
// set it, "" for none.
func fileKey(name string) string {
	for _, r := range documentRows() {
		if own := envName(r.key); r.fileOnly && (name == own || strings.HasPrefix(name, own+"_")) {
			return r.key
		}
	}
	return ""
}

// unknownVariables are the names in an environment that are nearly one of
// drover's, or stand for a key that has none, sorted: most likely it was mistyped,
// and does nothing. Scripts may have variables of their own.
func unknownVariables(env []string) []string {
	var ours []string
	for _, pair := range env {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "DROVER_") && value != "" {
			ours = append(ours, name)
		}
	}
	if ours == nil {
		return nil // as mostly: the names that are known need not even be listed
	}
	known := variableNames()
	unknown := slices.DeleteFunc(ours, func(name string) bool {
		return slices.Contains(known, name) || fileKey(name) == "" && !slip(name, nearest(name, known))
	})
	slices.Sort(unknown)
	return slices.Compact(unknown)
}

// slip reports whether one name is the other with a letter or two, of a long one a
// few, gone wrong.
func slip(name, meant string) bool {
	return edits(name, meant) <= max(2, (len(name)-len("DROVER_"))/4)
}

// warnOf tells about variables that mean nothing.
func (p *printer) warnOf(unknown []string) {
	for _, name := range unknown {
		if key := fileKey(name); key != "" {
			p.note("warning: the variable %s means nothing: %s is set in the configuration file only", escapeLine(name), key)
			continue
		}
		p.note("warning: the variable %s means nothing; the nearest one is %s", escapeLine(name), nearest(name, variableNames()))
	}
}
