package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/internal/owner"
	"github.com/drover-run/drover/pkg/store"
)

type nameOptions struct {
	base
	session string
	name    *string // nil: only read it
}

func newNameCmd(f *factory, runF func(context.Context, *nameOptions) error) *cobra.Command {
	if runF == nil {
		runF = runName
	}
	o := &nameOptions{}
	var forget bool
	cmd := &cobra.Command{
		Use:               "name SESSION [TEXT]",
		Short:             "Read, set or clear a session's name",
		Long:              "Read a session's name, set it to TEXT, or take it away with --clear." + exitHelp(exitOK, exitUsage, exitNotFound, exitCorrupt, exitIO, exitVersion, exitLocked),
		Args:              maxArgs(2),
		ValidArgsFunction: completeSession(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			session, rest, err := sessionArg(f, args)
			if err != nil {
				return err
			}
			o.session = session
			if o.name, err = newText("name", rest, forget); err != nil {
				return err
			}
			if o.base, err = f.base("name"); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&forget, "clear", false, "take the name away")
	return cmd
}

// newText is the name or label to set: "" clears, nil leaves it.
func newText(what string, rest []string, forget bool) (*string, error) {
	none := ""
	switch {
	case forget && len(rest) > 0:
		return nil, usagef("--clear takes no TEXT")
	case forget:
		return &none, nil
	case len(rest) == 0:
		return nil, nil
	case rest[0] == "":
		return nil, usagef("the %s is empty", what).withHint("take a %s away with --clear", what)
	}
	return &rest[0], checkOneLine("the "+what, rest[0])
}

func runName(ctx context.Context, o *nameOptions) error {
	if o.name == nil {
		return o.withReader(ctx, o.session, func(ref store.Ref, r store.Reader) error {
			name, _, err := store.Get(ctx, r, store.SessionName())
			if err != nil {
				return err
			}
			return o.print(ref, name.Value)
		})
	}
	ref, err := o.target(ctx, o.session)
	if err != nil {
		return err
	}
	err = o.reach(ctx, ref, func(c *owner.Client) error {
		return c.SetName(ctx, *o.name)
	}, func(s *store.Session) error {
		return firstOf(s.View(store.MainLane).SetName(ctx, *o.name), s.Close())
	})
	if err != nil {
		return err
	}
	return o.print(ref, *o.name)
}

func (o *nameOptions) print(ref store.Ref, name string) error {
	return o.out.result(nil, func(d *object) {
		d.str("session", ref.ID)
		d.optStr("name", name)
	}, func(w io.Writer) error { return printText(w, name) })
}
