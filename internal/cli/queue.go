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

type queueOptions struct {
	base
	queue   queue
	session string
	lane    string
	input   input
}

// queue is one of the three ways to leave a message for a run (spec §3.11).
type queue struct {
	command string
	short   string
	long    string
	remote  func(*owner.Client, context.Context, string, engine.Queued) (owner.Placement, error)
	local   func(*engine.Lane, context.Context, engine.Queued) (string, error)
}

func steerQueue() queue {
	return queue{
		command: "steer",
		short:   "Leave a message for the open run's next step",
		long: `Leave a message that the open run sees at its next checkpoint: after the answer
and the tool calls that are under way.`,
		remote: (*owner.Client).Steer, local: (*engine.Lane).Steer,
	}
}

func followUpQueue() queue {
	return queue{
		command: "follow-up",
		short:   "Leave a message for when the open run would end",
		long:    `Leave a message that the open run goes on with when it would otherwise end.`,
		remote:  (*owner.Client).FollowUp, local: (*engine.Lane).FollowUp,
	}
}

func nextRunQueue() queue {
	return queue{
		command: "next-run",
		short:   "Leave a message for the next run",
		long:    `Leave a message that the lane's next run starts with. It starts no run itself.`,
		remote:  (*owner.Client).NextRun, local: (*engine.Lane).NextRun,
	}
}

func newQueueCmd(f *factory, q queue, runF func(context.Context, *queueOptions) error) *cobra.Command {
	if runF == nil {
		runF = runQueue
	}
	o := &queueOptions{queue: q}
	cmd := &cobra.Command{
		Use:   q.command + " SESSION [TEXT...]",
		Short: q.short,
		Long: q.long + ` The text is the arguments
joined by blanks, or stdin when it is - or left out. It reaches a session that
another process is driving. The message can be taken back with cancel-queued.` +
			exitHelp(exitOK, exitUsage, exitNotFound, exitCorrupt, exitIO, exitVersion, exitRefused, exitLocked),
		ValidArgsFunction: completeSession(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			session, words, err := sessionArg(f, args)
			if err != nil {
				return err
			}
			o.session = session
			if err := o.input.take(cmd, words); err != nil {
				return err
			}
			if o.base, err = f.base(q.command); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	o.input.bind(cmd)
	cmd.Flags().StringVar(&o.lane, "lane", store.MainLane, "the `LANE` of the run")
	return cmd
}

func runQueue(ctx context.Context, o *queueOptions) error {
	c, err := o.input.read(o.out)
	if err != nil {
		return onLane(err, o.lane)
	}
	message, err := c.one()
	if err != nil {
		return err
	}
	ref, err := o.target(ctx, o.session)
	if err != nil {
		return err
	}
	message.EntryID = o.newID()
	queued := true
	err = o.reachLane(ctx, ref, o.lane, func(c *owner.Client) error {
		placed, err := o.queue.remote(c, ctx, o.lane, message)
		queued = placed.Queued
		return err
	}, func(lane *engine.Lane, s *store.Session) error {
		_, err := o.queue.local(lane, ctx, message)
		if err != nil {
			return err
		}
		// A repeated request may find its message placed already.
		_, queued, err = store.Get(ctx, s, store.Pending(message.EntryID))
		return err
	})
	if err != nil {
		return err
	}
	return o.placed(ref, o.lane, message.EntryID, queued)
}

// placed answers a request that left an entry for a lane or placed it.
func (b *base) placed(ref store.Ref, lane, entryID string, queued bool) error {
	return b.out.result(nil, func(d *object) {
		d.str("session", ref.ID)
		d.str("lane", lane)
		d.str("entryId", entryID)
		d.bool("queued", queued)
	}, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, entryID)
		return err
	})
}
