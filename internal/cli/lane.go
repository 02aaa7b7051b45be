package cli

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/internal/owner"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/store"
)

func newLaneCmd(f *factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lane",
		Short: "List, create and configure lanes",
		Long: `A lane is a named place in a session's tree where a conversation goes on; every
lane has its own model and tools and runs one operation at a time.`,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLaneListCmd(f, nil), newLaneCreateCmd(f, nil), newLaneSetCmd(f, nil))
	return cmd
}

type laneListOptions struct {
	base
	session string
}

func newLaneListCmd(f *factory, runF func(context.Context, *laneListOptions) error) *cobra.Command {
	if runF == nil {
		runF = runLaneList
	}
	o := &laneListOptions{}
	return &cobra.Command{
		Use:               "list SESSION",
		Short:             "List the lanes of a session",
		Long:              "List the lanes of a session: where they stand, what they run, their configuration." + exitHelp(exitOK, exitUsage, exitNotFound, exitCorrupt, exitIO, exitVersion),
		Args:              maxArgs(1),
		ValidArgsFunction: completeSession(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.session, _, err = sessionArg(f, args); err != nil {
				return err
			}
			if o.base, err = f.base("lane list"); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
}

func runLaneList(ctx context.Context, o *laneListOptions) error {
	return o.withReader(ctx, o.session, func(ref store.Ref, r store.Reader) error {
		lease, err := o.leaseIn(ctx, r, ref)
		if err != nil {
			return err
		}
		lanes, err := engine.Inspect(ctx, r, engine.InspectOptions{OwnerLive: ownerLive(lease)})
		if err != nil {
			return err
		}
		return o.out.result(nil, func(d *object) {
			d.str("session", ref.ID)
			d.array("lanes", len(lanes), func(i int, d *object) { writeLane(d, lanes[i]) })
		}, func(w io.Writer) error { return o.table(w, lanes) })
	})
}

// writeLane writes the LaneInfo of §5.2 with the lane's configuration.
func writeLane(d *object, r engine.LaneReport) {
	d.str("name", r.Lane)
	d.value("leafId", r.LeafID)
	if c := r.Current; c == nil {
		d.null("operation")
	} else {
		d.object("operation", func(d *object) {
			d.str("id", c.ID)
			d.str("kind", string(c.Kind))
			d.str("status", string(c.Status))
		})
	}
	writeConfig(d, r.Config)
}

// writeConfig writes a lane's configuration, null while it has none.
func writeConfig(d *object, c *store.LaneConfiguration) {
	if c == nil {
		d.null("config")
		return
	}
	d.value("config", *c)
}

func (o *laneListOptions) table(w io.Writer, lanes []engine.LaneReport) error {
	var ids []string
	for _, l := range lanes {
		ids = append(ids, string(l.LeafID))
	}
	short := o.out.shortIDs(ids)
	t := table{header: []string{"lane", "leaf", "operation", "model", "thinking", "tools"}}
	for _, l := range lanes {
		row := []string{escapeLine(l.Lane), "root", "", "", "", ""}
		if l.LeafID != "" {
			row[1] = short(string(l.LeafID))
		}
		if c := l.Current; c != nil {
			row[2] = string(c.Kind) + ", " + string(c.Status)
		}
		if c := l.Config; c != nil {
			row[3], row[4], row[5] = escapeLine(c.Model.String()), string(c.ThinkingLevel), escapeLine(strings.Join(c.ActiveToolNames, ","))
		}
		t.rows = append(t.rows, row)
	}
	return t.render(w, o.out.width)
}

type laneOptions struct {
	base
	session string
	name    string
	at      string // create: an entry's id, root, or "" for main's leaf
	flags   laneFlags
}

func newLaneCreateCmd(f *factory, runF func(context.Context, *laneOptions) error) *cobra.Command {
	if runF == nil {
		runF = runLaneCreate
	}
	o := &laneOptions{}
	cmd := &cobra.Command{
		Use:   "create SESSION NAME",
		Short: "Make a lane at an entry",
		Long: `Make a lane that goes on from an entry, by default from where main stands. Its
configuration is the flags', and what the configuration says for the rest.` +
			exitHelp(exitOK, exitUsage, exitNotFound, exitCorrupt, exitIO, exitVersion, exitRefused, exitLocked),
		Args:              maxArgs(2),
		ValidArgsFunction: completeSession(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.session, o.name, err = sessionAndOne(f, args, "which lane? Give its NAME"); err != nil {
				return err
			}
			if err := store.CheckLane(o.name); err != nil {
				return err
			}
			if o.base, err = f.base("lane create"); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	o.flags.bind(cmd)
	cmd.Flags().StringVar(&o.at, "at", "", "where it begins: the `ID` of an entry, or root (default: the leaf of main)")
	return cmd
}

func runLaneCreate(ctx context.Context, o *laneOptions) error {
	c, err := o.flags.configure()
	if err != nil {
		return err
	}
	seed, err := o.config.seed()
	if err != nil {
		return err
	}
	if err := o.catalog().check(o.name, configured(seed, c)); err != nil {
		return err
	}
	s, ref, err := o.openSession(ctx, o.session)
	if err != nil {
		return err
	}
	return o.withHarness(ctx, s, func(h *engine.Harness) error {
		at, err := o.place(ctx, s)
		if err != nil {
			return err
		}
		lane, err := h.CreateLane(ctx, o.name, at, c)
		if err != nil {
			return unknownTarget(err)
		}
		cfg, err := lane.Configuration(ctx)
		if err != nil {
			return err
		}
		return o.answer(ref, &at, cfg)
	})
}

// place is where the new lane begins.
func (o *laneOptions) place(ctx context.Context, s *store.Session) (store.LeafID, error) {
	switch o.at {
	case "":
		return s.View(store.MainLane).LeafID(ctx)
	case rootTarget:
		return "", nil
	}
	id, err := o.entryID(ctx, s, o.at)
	return store.LeafID(id), err
}

func (o *laneOptions) answer(ref store.Ref, leaf *store.LeafID, cfg store.LaneConfiguration) error {
	return o.out.result(nil, func(d *object) {
		d.str("session", ref.ID)
		d.str("lane", o.name)
		if leaf != nil {
			d.value("leafId", *leaf)
		}
		writeConfig(d, &cfg)
	}, nil)
}

func newLaneSetCmd(f *factory, runF func(context.Context, *laneOptions) error) *cobra.Command {
	if runF == nil {
		runF = runLaneSet
	}
	o := &laneOptions{}
	cmd := &cobra.Command{
		Use:   "set SESSION [LANE]",
		Short: "Change a lane's model, thinking or tools",
		Long: `Change the configuration of a lane, main when none is named. A step that is under
way goes on with what it began with. It reaches a session that another process is
driving.` + exitHelp(exitOK, exitUsage, exitNotFound, exitCorrupt, exitIO, exitVersion, exitRefused, exitLocked),
		Args:              maxArgs(2),
		ValidArgsFunction: completeSession(f, completeLanes),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			session, rest, err := sessionArg(f, args)
			if err != nil {
				return err
			}
			o.session, o.name = session, store.MainLane
			if len(rest) > 0 {
				o.name = rest[0]
			}
			if o.base, err = f.base("lane set"); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	o.flags.bind(cmd)
	return cmd
}

func runLaneSet(ctx context.Context, o *laneOptions) error {
	c, err := o.flags.configure()
	if err != nil {
		return err
	}
	if c == (engine.Configure{}) {
		return usagef("what shall change? Give --model, --thinking or --tools")
	}
	if err := o.catalog().checkSetters(o.name, c); err != nil {
		return err
	}
	ref, err := o.target(ctx, o.session)
	if err != nil {
		return err
	}
	var cfg store.LaneConfiguration
	err = o.reachLane(ctx, ref, o.name, func(client *owner.Client) (err error) {
		cfg, err = client.Configure(ctx, o.name, c)
		return err
	}, func(lane *engine.Lane, _ *store.Session) error {
		if err := lane.Configure(ctx, c); err != nil {
			return err
		}
		cfg, err = lane.Configuration(ctx)
		return err
	})
	if err != nil {
		return err
	}
	return o.answer(ref, nil, cfg)
}
