package cli

import (
	"errors"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/tool"
)

// catalog finds what a lane's configuration may name.
type catalog struct {
	models  func() effect.Models
	tools   func(cwd string) (*tool.Registry, error)
	servers mcpServers
}

func (b *base) catalog() catalog {
	return catalog{models: b.models, tools: b.tools, servers: b.config.mcp}
}

// newTools are the tools of a session that works in cwd.
func (f *factory) newTools(cwd string) (*tool.Registry, error) {
	c, err := f.config()
	if err != nil {
		return nil, err
	}
	tools := tool.Builtins(tool.Options{CWD: cwd, StripEnv: c.secretEnv})
	r, err := tool.New(append(tools, f.programTools(c, cwd)...)...)
	if err != nil {
		return nil, err
	}
	return r.WithSources(f.toolSources(c, cwd)...), nil
}

// check refuses a configuration whose model or tools do not exist.
func (c catalog) check(lane string, cfg store.LaneConfiguration) error {
	return c.checkSetters(lane, engine.Configure{Model: &cfg.Model, ActiveToolNames: &cfg.ActiveToolNames})
}

// checkSetters refuses setters that name a model or tools that do not exist.
func (c catalog) checkSetters(lane string, set engine.Configure) error {
	refusal := &engine.MissingIdentities{Lane: lane, Missing: op.Missing{Tools: []string{}}}
	if set.Model != nil {
		_, err := c.models().Resolve(*set.Model)
		if unknown, ok := errors.AsType[*effect.UnknownModel](err); ok {
			refusal.Missing.Model, refusal.Err = set.Model.String(), unknown
		} else if err != nil {
			return err
		}
	}
	if set.ActiveToolNames != nil {
		tools, err := c.tools("")
		if err != nil {
			return err
		}
		for _, name := range *set.ActiveToolNames {
			if _, ok := tools.Lookup(name); !ok {
				refusal.LackTool(name, tools)
			}
		}
		if err := checkTools(tools, *set.ActiveToolNames); err != nil {
			return err
		}
		if err := c.servers.checkOf(*set.ActiveToolNames); err != nil {
			return err
		}
	}
	if refusal.Err != nil || len(refusal.Missing.Tools) > 0 {
		return refusal
	}
	return nil
}
