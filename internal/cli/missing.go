package cli

import (
	"errors"

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
