package cli

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/export"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

type showOptions struct {
	base
	session string
	lane    string
	entry   string
	form    string
	context bool
}

func newShowCmd(f *factory, runF func(context.Context, *showOptions) error) *cobra.Command {
	if runF == nil {
		runF = runShow
	}
	o := &showOptions{}
	cmd := &cobra.Command{
		Use:   "show SESSION",
		Short: "Show the conversation of a lane",
		Long: `Show the conversation of a lane from its root to its leaf, or to the entry given
with --entry. With --context show what a request from there would send.` +
			exitHelp(exitOK, exitUsage, exitNotFound, exitCorrupt, exitIO, exitVersion, exitRefused),
		Args:              maxArgs(1),
		ValidArgsFunction: completeSession(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.session, _, err = sessionArg(f, args); err != nil {
				return err
			}
			if o.base, err = f.base("show"); err != nil {
				return err
			}
			if err := o.checkForm(); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.lane, "lane", store.MainLane, "the `LANE` to show")
	flags.StringVar(&o.entry, "entry", "", "the `ID` of the entry to end at")
	flags.StringVar(&o.form, "format", "text", "`FORM` of the transcript: text, markdown, html or json")
	flags.BoolVar(&o.context, "context", false, "show the messages that a request would send")
	return cmd
}

func (o *showOptions) checkForm() error {
	switch o.form {
	case "text":
	case "markdown", "html":
		if o.out.format != formatText {
			return usagef("--format %s and %s exclude each other", o.form, o.out.chosenBy)
		}
	case "json":
		if o.out.format == formatText {
			o.out.format = formatJSON
		}
	default:
		return usagef("--format %q: want text, markdown, html or json", escapeLine(o.form))
	}
	return nil
}

func runShow(ctx context.Context, o *showOptions) error {
	return o.withReader(ctx, o.session, func(ref store.Ref, r store.Reader) error {
		leaf, err := o.leaf(ctx, r)
		if err != nil {
			return err
		}
		if o.context {
			return o.showContext(ctx, ref, r, leaf)
		}
		var entries []store.Entry
		if leaf != "" {
			if entries, err = r.ScanBranch(ctx, store.BranchQuery{Start: string(leaf), OldestFirst: true}); err != nil {
				return o.damaged(err, leaf)
			}
		}
		name, _, err := store.Get(ctx, r, store.SessionName())
		if err != nil {
			return err
		}
		return o.out.result(nil, func(d *object) {
			d.str("session", ref.ID)
			d.str("lane", o.lane)
			d.value("leafId", leaf)
			d.values("entries", len(entries), func(i int) store.Appender { return entries[i] })
		}, func(w io.Writer) error {
			t := o.transcript(w)
			t.Title(ref.ID, name.Value, o.lane)
			for _, e := range entries {
				t.Entry(e)
			}
			return t.End()
		})
	})
}

// damaged says what an unknown leaf means: the session itself names it. That the
// entry of --entry exists has been looked at.
func (o *showOptions) damaged(err error, leaf store.LeafID) error {
	if errors.Is(err, store.ErrNotFound) {
		return store.MissingEntry(string(leaf), "lane "+o.lane)
	}
	return err
}

// leaf is where the shown branch ends.
func (o *showOptions) leaf(ctx context.Context, r store.Reader) (store.LeafID, error) {
	leaf, err := laneLeaf(ctx, r, o.lane)
	if err != nil {
		return "", err
	}
	if o.entry == "" {
		return leaf, nil
	}
	id, err := o.entryID(ctx, r, o.entry)
	if err != nil {
		return "", err
	}
	found, err := r.Entries(ctx, []string{id})
	if err != nil {
		return "", err
	}
	if _, ok := found[id]; !ok {
		return "", notFoundf("entry_not_found", "the session has no entry %q", escapeLine(o.entry))
	}
	return store.LeafID(id), nil
}

// laneLeaf is where a lane stands.
func laneLeaf(ctx context.Context, r store.Reader, lane string) (store.LeafID, error) {
	leaf, ok, err := store.Get(ctx, r, store.LaneLeaf(lane))
	if err != nil || ok {
		return leaf.Value, err
	}
	names, err := engine.LaneNames(ctx, r)
	if err != nil {
		return "", err
	}
	return "", &engine.LaneNotFound{Lane: lane, Known: names}
}

func (o *showOptions) showContext(ctx context.Context, ref store.Ref, r store.Reader, leaf store.LeafID) error {
	projected, err := engine.Context(ctx, r, leaf, nil)
	if err != nil {
		return err
	}
	messages := message.ToProvider(slices.Clone(projected))
	system, err := o.systemPromptOf(ctx, r)
	if err != nil {
		return err
	}
	return o.out.result(nil, func(d *object) {
		d.str("session", ref.ID)
		d.str("lane", o.lane)
		d.value("leafId", leaf)
		if system != "" {
			d.str("systemPrompt", system)
		}
		d.values("messages", len(messages), func(i int) store.Appender { return messages[i] })
	}, func(w io.Writer) error {
		t := o.transcript(w)
		for _, m := range messages {
			t.Message(m, m.Timestamp())
		}
		return t.End()
	})
}

// transcript is the writer of the asked-for form.
func (o *showOptions) transcript(w io.Writer) transcript {
	switch o.form {
	case "markdown":
		return export.Markdown(w)
	case "html":
		return export.HTML(w)
	}
	return newDialogue(w, o.out)
}

// transcript writes a conversation, one entry or message after another.
type transcript interface {
	Title(id, name, lane string)
	Entry(e store.Entry)
	Message(m message.Message, timestamp int64)
	End() error
}
