package cli

import (
	"errors"
	"slices"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/model/scripted"
)

// missingHint says what a person can do about a model or tools that are not there.
func missingHint(e *engine.MissingIdentities) string {
	model, ok := errors.AsType[*effect.UnknownModel](e.Err)
	switch {
	case ok && model.Cure != "":
		return model.Cure + " (`drover help providers`, `drover doctor`)"
	case ok && model.Unusable:
		return "`drover doctor` looks at the providers, `drover help providers` says how they are configured"
	case ok && model.Ref.Provider == scripted.Name:
		return "the file has to be there, by that path: `drover help scripts`"
	case e.Missing.Model != "":
		return "`drover model list` shows the models that are described; `drover help providers` says how the configuration adds a provider"
	case e.Err != nil:
		return "`drover mcp list` starts the servers and says what is wrong: `drover help mcp`"
	}
	return "the configuration adds tools to bash, read, write and edit: `drover help programs`, `drover help mcp`"
}

// pointToFile adds to the hint on a provider or tools that nobody has configured which
// file the configuration is.
func (f *factory) pointToFile(fail *failure, err error) {
	model, ok := errors.AsType[*effect.UnknownModel](err)
	lacks := ok && len(model.Nearest) == 0 && !f.hasProvider(model.Ref.Provider)
	if missing, ok := errors.AsType[*engine.MissingIdentities](err); ok && !lacks {
		lacks = slices.ContainsFunc(missing.Missing.Tools, func(name string) bool { return missing.Nearest[name] == nil })
	}
	if lacks && fail.hint != "" {
		fail.hint += "; the file is " + f.configPlace()
	}
}

// hasProvider reports whether a provider is built in or configured.
func (f *factory) hasProvider(name string) bool {
	endpoints, err := f.endpoints()
	return name == scripted.Name || err != nil || slices.ContainsFunc(endpoints, func(e *endpoint) bool { return e.name == name })
}
