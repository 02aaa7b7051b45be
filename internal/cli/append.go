package cli

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/internal/owner"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

type appendOptions struct {
	base
	session    string
	lane       string
	input      input
	customType string
	data       string
}

func newAppendCmd(f *factory, runF func(context.Context, *appendOptions) error) *cobra.Command {
	if runF == nil {
		runF = runAppend
	}
	o := &appendOptions{}
	cmd := &cobra.Command{
		Use:   "append SESSION [TEXT...]",
		Short: "Add a message or a custom entry without asking the model",
		Long: `Add a user message, a whole message, or an application's own entry under a lane's
leaf, without starting anything. While a run is open the entry waits for its next
checkpoint, also when another process is driving it.` +
			exitHelp(exitOK, exitUsage, exitNotFound, exitCorrupt, exitIO, exitVersion, exitRefused, exitLocked),
		ValidArgsFunction: completeSession(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			session, words, err := sessionArg(f, args)
			if err != nil {
				return err
			}
			o.session = session
			if err := o.take(cmd, words); err != nil {
				return err
			}
			if o.base, err = f.base("append"); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	o.input.bind(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.lane, "lane", store.MainLane, "the `LANE` to add to")
	flags.StringVar(&o.customType, "custom-type", "", "add a custom entry of this `TYPE` instead of a message")
	flags.StringVar(&o.data, "data", "", "the custom entry's data as `JSON` (- for stdin)")
	return cmd
}

func (o *appendOptions) take(cmd *cobra.Command, words []string) error {
	custom := cmd.Flags().Changed("custom-type")
	switch {
	case !custom && cmd.Flags().Changed("data"):
		return usagef("--data goes with --custom-type only")
	case custom && (len(words) > 0 || o.input.message != "" || len(o.input.images) > 0):
		return usagef("--custom-type takes no message")
	case custom:
		return checkOneLine("--custom-type", o.customType)
	}
	return o.input.take(cmd, words)
}

func runAppend(ctx context.Context, o *appendOptions) error {
	entry, err := o.entry()
	if err != nil {
		return onLane(err, o.lane)
	}
	ref, err := o.target(ctx, o.session)
	if err != nil {
		return err
	}
	id, queued := o.newID(), false
	err = o.reachLane(ctx, ref, o.lane, func(c *owner.Client) error {
		placed, err := c.Append(ctx, o.lane, id, entry)
		queued = placed.Queued
		return err
	}, func(lane *engine.Lane, s *store.Session) error {
		if _, _, err := lane.Append(ctx, id, entry); err != nil {
			return err
		}
		_, queued, err = store.Get(ctx, s, store.Pending(id))
		return err
	})
	if err != nil {
		return err
	}
	return o.placed(ref, o.lane, id, queued)
}

// entry is what to add.
func (o *appendOptions) entry() (store.PendingEntry, error) {
	if o.customType != "" {
		e := store.PendingEntry{Type: store.TypeCustom, CustomType: o.customType}
		if o.data == "" {
			return e, nil
		}
		data, err := readJSON(o.out, "--data", o.data)
		e.Payload = json.RawMessage(data)
		return e, err
	}
	c, err := o.input.read(o.out)
	if err != nil {
		return store.PendingEntry{}, err
	}
	q, err := c.one()
	if err != nil {
		return store.PendingEntry{}, err
	}
	m := q.Message
	if m == nil {
		m = message.NewUser(q.Text, q.Images, o.now())
	}
	return store.PendingEntry{Type: store.TypeMessage, Payload: json.RawMessage(m)}, nil
}
