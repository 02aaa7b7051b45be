package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-run/drover/internal/secret"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/tool"
)

const (
	maxName   = 64
	validName = `^[A-Za-z0-9_-]{1,64}$`
	maxTools  = 10_000 // a server that lists more is broken
)

// Listed is one tool of a started server.
type Listed struct {
	Name   string // SERVER__TOOL
	Remote string // what the server calls it
	Spec   message.ToolSpec
	// Problem says why it is not offered, or what does not work of it; Offered
	// tells the two apart.
	Problem  string
	Offered  bool
	safeHint bool
	schema   *tool.Schema // nil: what it says can not be checked here
}

// list asks the server for all its tools.
func list(ctx context.Context, c Config, session *sdk.ClientSession) ([]Listed, error) {
	var all []Listed
	keys := c.keys()
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		if len(all) == maxTools {
			return nil, fmt.Errorf("there are more than %d", maxTools)
		}
		l, err := describe(c, t, keys)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		all = append(all, l)
	}
	slices.SortStableFunc(all, func(a, b Listed) int { return strings.Compare(a.Name, b.Name) })
	for i := range all {
		if i > 0 && all[i].Name == all[i-1].Name {
			for _, l := range []*Listed{&all[i-1], &all[i]} {
				l.Offered, l.Problem = false, fmt.Sprintf("the server has two tools of that name; give one another with rename: {%q: NAME}", l.Remote)
			}
		}
	}
	return all, nil
}

func describe(c Config, t *sdk.Tool, keys *secret.Set) (Listed, error) {
	schema, err := json.Marshal(t.InputSchema)
	if err != nil {
		return Listed{}, err
	}
	l := Listed{
		Name: c.exposed(t.Name), Remote: t.Name, Offered: true,
		Spec: message.ToolSpec{Name: c.exposed(t.Name), Description: keys.Out(t.Description), Parameters: schema},
	}
	if a := t.Annotations; a != nil {
		l.safeHint = a.ReadOnlyHint || a.IdempotentHint
	}
	if !regexp.MustCompile(validName).MatchString(l.Name) {
		l.Offered = false
		l.Problem = fmt.Sprintf("the name is not 1 to %d letters, digits, underscores and hyphens; give it one with rename: {%q: %s}",
			maxName, t.Name, suggestion(c.Prefix(), t.Name))
		return l, nil
	}
	if l.schema, err = tool.Compile(schema); err != nil {
		l.schema, l.Problem = nil, fmt.Sprintf("its arguments are not checked: %v", err)
	}
	return l, nil
}
