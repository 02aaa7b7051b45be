package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/internal/owner"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/store"
)

type cancelOptions struct {
	base
	session string
	entry   string
	lane    string // "" is every lane
}

func newCancelQueuedCmd(f *factory, runF func(context.Context, *cancelOptions) error) *cobra.Command {
	if runF == nil {
		runF = runCancelQueued
	}
	o := &cancelOptions{}
	cmd := &cobra.Command{
		Use:   "cancel-queued SESSION ENTRY",
		Short: "Take a queued message back",
		Long: `Take back a message or write that waits under its entry id. What has been placed
already stays (8), and what is not known, or was taken back before, is not found
(4).` + exitHelp(exitOK, exitUsage, exitNotFound, exitCorrupt, exitIO, exitVersion, exitRefused, exitLocked),
		Args:              maxArgs(2),
		ValidArgsFunction: completeSession(f, completeQueued),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.session, o.entry, err = sessionAndOne(f, args, "which entry? Name the id that queueing it printed"); err != nil {
				return err
			}
			if o.base, err = f.base("cancel-queued"); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.lane, "lane", "", "only this `LANE`")
	return cmd
}

// sessionAndOne takes the session and one more argument.
func sessionAndOne(f *factory, args []string, missing string) (session, other string, err error) {
	session, rest, err := sessionArg(f, args)
	if err != nil {
		return "", "", err
	}
	if len(rest) == 0 || rest[0] == "" {
		refusal := usagef("%s", missing)
		if len(args) > 0 && f.env("DROVER_SESSION") != "" {
			refusal.hint = nameItToo
		}
		return "", "", refusal
	}
	return session, rest[0], nil
}

func runCancelQueued(ctx context.Context, o *cancelOptions) error {
	ref, err := o.target(ctx, o.session)
	if err != nil {
		return err
	}
	err = o.view(ctx, ref, func(r store.Reader) error {
		o.entry, err = o.queuedID(ctx, r, o.entry)
		return err
	})
	if err != nil {
		return err
	}
	kind := engine.ItemNotFound
	err = o.reach(ctx, ref, func(c *owner.Client) error {
		lanes, err := c.Inspect(ctx, o.lane, false)
		if err != nil {
			return err
		}
		names := make([]string, len(lanes))
		for i, l := range lanes {
			names[i] = l.Lane
		}
		kind, err = cancelIn(names, func(lane string) (engine.CancelResult, error) { return c.CancelQueued(ctx, lane, o.entry) })
		return err
	}, func(s *store.Session) error {
		return o.withHarness(ctx, s, func(h *engine.Harness) error {
			kind, err = o.onFile(ctx, h)
			return err
		})
	})
	if err != nil {
		return err
	}
	return o.out.result(o.failure(kind), func(d *object) {
		d.str("entryId", o.entry)
		d.str("kind", string(kind))
	}, func(w io.Writer) error {
		if kind != engine.CancelledItem {
			return nil
		}
		_, err := fmt.Fprintln(w, kind)
		return err
	})
}

func (o *cancelOptions) onFile(ctx context.Context, h *engine.Harness) (engine.CancelResult, error) {
	var names []string
	for _, lane := range h.Lanes() {
		if o.lane == "" || lane.Name() == o.lane {
			names = append(names, lane.Name())
		}
	}
	if len(names) == 0 {
		_, err := h.Lane(o.lane)
		return "", err
	}
	return cancelIn(names, func(name string) (engine.CancelResult, error) {
		lane, err := h.Lane(name)
		if err != nil {
			return "", err
		}
		return lane.CancelQueued(ctx, o.entry)
	})
}

// cancelIn asks one lane after the other: only one can hold the item, and every
// one knows whether it has been placed.
func cancelIn(lanes []string, cancel func(lane string) (engine.CancelResult, error)) (kind engine.CancelResult, err error) {
	for _, lane := range lanes {
		if kind, err = cancel(lane); err != nil || kind == engine.CancelledItem {
			return kind, err
		}
	}
	return kind, nil
}

func (o *cancelOptions) failure(kind engine.CancelResult) error {
	f := &failure{tag: string(kind), details: func(d *object) { d.str("entryId", o.entry) }}
	switch kind {
	case engine.AlreadyConsumed:
		f.code, f.message = exitRefused, fmt.Sprintf("entry %s has been placed already", escapeLine(o.entry))
	case engine.ItemNotFound:
		f.code, f.message = exitNotFound, fmt.Sprintf("nothing waits under %s", escapeLine(o.entry))
	default:
		return nil
	}
	return f
}
