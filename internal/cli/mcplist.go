package cli

import (
	"context"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/tool/mcp"
)

func newMCPCmd(f *factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "List the MCP servers of the configuration, and their tools",
		Long:  "Servers of the Model Context Protocol offer tools to models: `drover help mcp` tells how.",
		Args:  unknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newMCPListCmd(f, nil))
	return cmd
}

type mcpListOptions struct {
	out     *printer
	servers []*mcp.Server
	check   func(name string) error // says why a server cannot be started
}

func newMCPListCmd(f *factory, runF func(context.Context, *mcpListOptions) error) *cobra.Command {
	if runF == nil {
		runF = runMCPList
	}
	return &cobra.Command{
		Use:   "list [SERVER...]",
		Short: "Start MCP servers and list their tools",
		Long: `Start the MCP servers of the configuration, or the named ones, list their tools by
the names that lanes are configured with, and end them again.` +
			exitHelp(exitOK, exitUsage, exitPartial, exitNotFound, exitRefused),
		ValidArgsFunction: completeConfigured(f, serverWords),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.opening()
			c, err := f.config()
			if err != nil {
				return err
			}
			o := &mcpListOptions{check: c.mcp.checkNamed}
			if o.out, err = f.out(); err != nil {
				return err
			}
			cwd, err := os.Getwd()
			if err != nil {
				return err
			}
			if o.servers, err = namedServers(f.mcpServers(c, cwd), args); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
}

// namedServers picks the servers that the arguments name, all without any.
func namedServers(all []*mcp.Server, names []string) ([]*mcp.Server, error) {
	if len(names) == 0 {
		return all, nil
	}
	byName := map[string]*mcp.Server{}
	for _, s := range all {
		byName[s.Name()] = s
	}
	var picked []*mcp.Server
	for _, name := range names {
		s, ok := byName[name]
		if !ok {
			return nil, noServer(name, slices.Sorted(maps.Keys(byName)))
		}
		picked = append(picked, s)
	}
	return picked, nil
}

func noServer(name string, known []string) error {
	f := &failure{code: exitNotFound, tag: "not_found", message: "no MCP server is named " + escapeLine(name)}
	if len(known) == 0 {
		return f.withHint("the configuration names none; `drover help mcp` tells how")
	}
	return f.withHint("the nearest is %s", nearest(name, known))
}

// mcpItem is a server and what it listed.
type mcpItem struct {
	server *mcp.Server
	tools  []mcp.Listed
	err    error
}

func runMCPList(ctx context.Context, o *mcpListOptions) error {
	items := make([]mcpItem, len(o.servers))
	err := inOrder(len(items), func(i int) error {
		items[i] = o.list(ctx, o.servers[i])
		return nil
	}, func(i int) {
		// A failed write sticks to the stream and is reported at the end.
		_ = o.out.item(items[i].write)
	})
	if err != nil {
		return err
	}
	errs := make([]error, len(items))
	tools := 0
	for i, item := range items {
		errs[i] = item.err
		tools += len(item.tools)
	}
	if len(items) == 0 {
		o.out.note("no MCP server is configured; `drover help mcp` tells how")
	}
	failed := itemsFailure("MCP servers", errs)
	return o.out.result(failed, func(d *object) {
		d.array("items", len(items), func(i int, d *object) { items[i].write(d) })
		d.object("totals", func(d *object) {
			d.int("servers", int64(len(items)))
			d.int("tools", int64(tools))
			d.int("failed", int64(failures(errs)))
		})
	}, func(w io.Writer) error {
		if len(items) == 0 || failed != nil && len(items) == 1 {
			return nil // the note or the error says it all
		}
		t := table{header: []string{"tool", "description", "interrupted calls", "problem"}}
		for _, item := range items {
			t.rows = append(t.rows, item.rows()...)
		}
		return t.render(w, o.out.width)
	})
}

func failures(errs []error) int {
	n := 0
	for _, err := range errs {
		if err != nil {
			n++
		}
	}
	return n
}

// list starts a server, asks for its tools, and ends it.
func (o *mcpListOptions) list(ctx context.Context, s *mcp.Server) mcpItem {
	item := mcpItem{server: s}
	if item.err = o.check(s.Name()); item.err != nil {
		return item
	}
	item.tools, item.err = s.Tools(ctx)
	if closing := s.Close(); item.err == nil {
		item.err = closing
	}
	if item.err != nil {
		item.err = &failure{code: exitRefused, tag: "missing_identities", message: item.err.Error(), cause: item.err}
	}
	return item
}

// safe tells whether an interrupted call of a tool runs again.
func (i mcpItem) safe(l mcp.Listed) bool {
	found, ok := i.server.Lookup(l.Name)
	return ok && effect.Tool(found).ReplaySafe()
}

func (i mcpItem) write(d *object) {
	d.str("server", i.server.Name())
	d.array("tools", len(i.tools), func(n int, d *object) {
		l := i.tools[n]
		d.str("name", l.Name)
		d.str("remoteName", l.Remote)
		d.str("description", l.Spec.Description)
		d.raw("parameters", l.Spec.Parameters)
		d.bool("offered", l.Offered)
		d.bool("replaySafe", i.safe(l))
		d.optStr("problem", l.Problem)
	})
	d.itemError(i.err)
}

func (i mcpItem) rows() [][]string {
	if i.err != nil {
		why := strings.TrimPrefix(i.err.Error(), "MCP server "+i.server.Name()+": ")
		return [][]string{{escapeLine(i.server.Name()), "", "", escapeLine(why)}}
	}
	var rows [][]string
	for _, l := range i.tools {
		again := "end"
		if i.safe(l) {
			again = "run again"
		}
		rows = append(rows, []string{escapeLine(l.Name), escapeLine(firstLine(l.Spec.Description)), again, escapeLine(l.Problem)})
	}
	return rows
}
