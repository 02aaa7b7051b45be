package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/internal/owner"
	"github.com/drover-run/drover/pkg/store"
)

type labelOptions struct {
	base
	session string
	entry   string  // "" is every labelled one
	label   *string // nil: only read it
}

// labelled is one entry with its label, "" for none.
type labelled struct{ entryID, label string }

func newLabelCmd(f *factory, runF func(context.Context, *labelOptions) error) *cobra.Command {
	if runF == nil {
		runF = runLabel
	}
	o := &labelOptions{}
	var forget bool
	cmd := &cobra.Command{
		Use:   "label SESSION [ENTRY [TEXT]]",
		Short: "Read, set or clear the labels of entries",
		Long: `Read all labels of a session or that of one entry, set it to TEXT, or take it away
with --clear.` + exitHelp(exitOK, exitUsage, exitNotFound, exitCorrupt, exitIO, exitVersion, exitLocked),
		Args:              maxArgs(3),
		ValidArgsFunction: completeSession(f, completeEntries),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			session, rest, err := sessionArg(f, args)
			if err != nil {
				return err
			}
			o.session = session
			if err := o.take(rest, forget); err != nil {
				return err
			}
			if o.base, err = f.base("label"); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&forget, "clear", false, "take the label away")
	return cmd
}

func (o *labelOptions) take(rest []string, forget bool) (err error) {
	if len(rest) == 0 {
		if forget {
			return usagef("--clear needs an ENTRY")
		}
		return nil
	}
	if o.entry = rest[0]; o.entry == "" {
		return usagef("the entry argument is empty")
	}
	o.label, err = newText("label", rest[1:], forget)
	return err
}

func runLabel(ctx context.Context, o *labelOptions) error {
	find := o.resolve
	if o.label != nil {
		find = o.target
	}
	ref, err := find(ctx, o.session)
	if err != nil {
		return err
	}
	var found []labelled
	err = o.view(ctx, ref, func(r store.Reader) error {
		found, err = o.read(ctx, r)
		return err
	})
	if err != nil {
		return err
	}
	if o.label == nil {
		return o.print(ref, found)
	}
	set := labelled{found[0].entryID, *o.label}
	err = o.reach(ctx, ref, func(c *owner.Client) error {
		return c.SetLabel(ctx, set.entryID, set.label)
	}, func(s *store.Session) error {
		return firstOf(s.View(store.MainLane).SetLabel(ctx, set.entryID, set.label), s.Close())
	})
	if err != nil {
		return err
	}
	return o.print(ref, []labelled{set})
}

// read finds the labels that are asked for; one entry is found or refused.
func (o *labelOptions) read(ctx context.Context, r store.Reader) ([]labelled, error) {
	if o.entry == "" {
		labels, err := store.Scan(ctx, r, store.EntryLabels())
		if err != nil {
			return nil, err
		}
		all := make([]labelled, len(labels))
		for i, l := range labels {
			all[i] = labelled{l.Address.Key, l.Value}
		}
		return all, nil
	}
	id, err := o.entryID(ctx, r, o.entry)
	if err != nil {
		return nil, err
	}
	if err := checkEntry(ctx, r, id); err != nil {
		return nil, err
	}
	label, _, err := store.Get(ctx, r, store.EntryLabel(id))
	return []labelled{{id, label.Value}}, err
}

// checkEntry refuses an id that names no entry.
func checkEntry(ctx context.Context, q store.Queries, id string) error {
	found, err := q.Entries(ctx, []string{id})
	if err == nil && len(found) == 0 {
		err = &store.UnknownTarget{ID: id}
	}
	return err
}

func (o *labelOptions) print(ref store.Ref, labels []labelled) error {
	return o.out.result(nil, func(d *object) {
		d.str("session", ref.ID)
		d.array("labels", len(labels), func(i int, d *object) {
			d.str("entryId", labels[i].entryID)
			d.optStr("label", labels[i].label)
		})
	}, func(w io.Writer) error {
		if o.entry != "" {
			return printText(w, labels[0].label)
		}
		ids := make([]string, len(labels))
		for i, l := range labels {
			ids[i] = l.entryID
		}
		short, p := o.out.shortIDs(ids), &lines{w: w}
		for _, l := range labels {
			p.line("%s  %s", short(l.entryID), escapeLine(l.label))
		}
		return p.err
	})
}

// printText prints a line of text, nothing when there is none.
func printText(w io.Writer, text string) error {
	if text == "" {
		return nil
	}
	_, err := fmt.Fprintln(w, escapeLine(text))
	return err
}
