package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

type promptOptions struct {
	operation
	fresh    bool // make the session first
	new      newSession
	input    input
	resource resourceFlags
	deferred string // the window of an answer that may come later, "" for none
}

func newPromptCmd(f *factory, runF func(context.Context, *promptOptions) error) *cobra.Command {
	if runF == nil {
		runF = runPrompt
	}
	o := &promptOptions{}
	cmd := &cobra.Command{
		Use:   "prompt SESSION [TEXT...]",
		Short: "Send a message and drive the run to its end",
		Long: `Send a message to a session and drive the run that answers it to its end. The
text is the arguments joined by blanks, or stdin when it is - or left out.

The message is durable before the model is asked: whatever ends this process,
"drover drive SESSION" goes on from where it stood. With --new the first argument
is text too: a session is made and its id is printed on stderr.

Tools work in the session's folder, which is remembered. When that is gone a lane
with tools is refused (8 cwd_unusable) until --cwd gives the session another one,
which it keeps; a lane without tools needs none.

With --skill or --template the message is made of one that the configuration's
folders hold. With --deferred the provider may answer later: the command ends with
75, and "drover drive SESSION --poll-deferred" asks for the answer.` +
			exitHelp(exitOK, exitFailed, exitUsage, exitNotFound, exitCorrupt, exitIO, exitVersion, exitRefused,
				exitAborted, exitLocked, exitLater, exitInt, exitTerm),
		ValidArgsFunction: completeSession(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := o.target(f, cmd, args); err != nil {
				return err
			}
			if err := o.start(f, "prompt"); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.fresh, "new", false, "make a new session for the message")
	o.new.bind(cmd)
	o.bind(cmd)
	o.laneFlags.bindLasting(cmd)
	o.input.bind(cmd)
	o.resource.bind(cmd)
	flags.StringVar(&o.deferred, "deferred", "", "let the provider answer within a `WINDOW`: 15m, 1h or 24h")
	return cmd
}

// target sorts the arguments into session and text and refuses flags that do not
// go together.
func (o *promptOptions) target(f *factory, cmd *cobra.Command, args []string) (err error) {
	words := args
	if !o.fresh {
		if name := o.new.given(); name != "" && name != "cwd" {
			return usagef("--%s goes with --new only", name)
		}
		if o.new.changed("cwd") && o.new.cwd == "" {
			return usagef("--cwd needs the name of a folder")
		}
		if o.session, words, err = sessionArg(f, args); err != nil {
			return err
		}
	}
	switch o.deferred {
	case "", "15m", "1h", "24h":
	default:
		return usagef("--deferred %q: want 15m, 1h or 24h", escapeLine(o.deferred))
	}
	if err := o.input.take(cmd, words); err != nil {
		return err
	}
	if err := o.resource.check(cmd, &o.input); err != nil {
		return err
	}
	return o.check()
}

func runPrompt(ctx context.Context, o *promptOptions) error {
	request, err := o.request()
	if err != nil {
		return onLane(err, o.lane)
	}
	if err := o.checkConfigured(); err != nil {
		return err
	}
	s, ref, err := o.open(ctx)
	if err != nil {
		return err
	}
	dir, err := workingFolder(ctx, s, o.naming(ref), o.replacement())
	if err != nil {
		return firstOf(err, s.Close())
	}
	options, err := o.harnessOptionsIn(dir.path, s)
	if err != nil {
		return firstOf(err, s.Close())
	}
	if o.deferred != "" {
		options.StreamOptions.Deferred = json.RawMessage(`{"window":"` + o.deferred + `"}`)
	}
	placed := false
	ctx, cancel := withDeadline(ctx, o.deadline, o.now())
	defer cancel()
	err = o.engageWith(ctx, ref, options, func(e *engaged) error {
		return o.carry(ctx, e, accepted{ref: ref, text: true}, func(ctx context.Context, _ *engine.Harness, lane *engine.Lane) (engine.Admission, error) {
			if err := dir.check(func() (bool, error) { return o.hasTools(ctx, s, request.Configure) }); err != nil {
				return engine.Admission{}, err
			}
			return dir.record(ctx, s, o.lane, func() (engine.Admission, error) { return lane.Accept(ctx, request) })
		}, func() {
			placed = true
			if o.fresh {
				o.out.announce(ref.ID)
			}
			o.tellOfModelAtOnce(ctx, e, options.Models)
		})
	})
	if _, faulted := errors.AsType[*store.Fault](err); o.fresh && !placed && !faulted {
		// Nothing is left of a session whose first message was not accepted. After
		// a fault nobody knows whether it was.
		return firstOf(err, o.repo.Delete(context.WithoutCancel(ctx), ref))
	}
	return err
}

// tellOfModelAtOnce says that --deferred asks in vain of a lane whose model can only
// answer at once: that costs what it always does.
func (o *promptOptions) tellOfModelAtOnce(ctx context.Context, e *engaged, models effect.Models) {
	if o.deferred == "" {
		return
	}
	// What cannot be found out here stops the run, and is told then.
	lane, err := e.Lane(o.lane)
	if err != nil {
		return
	}
	cfg, err := lane.Configuration(ctx)
	if err != nil {
		return
	}
	m, err := models.Resolve(cfg.Model)
	if err != nil {
		return
	}
	if _, ok := m.(effect.DeferredModel); !ok {
		o.out.note("note: %s answers at once, --deferred changes nothing", escapeLine(cfg.Model.String()))
	}
}

func (o *promptOptions) open(ctx context.Context) (*store.Session, store.Ref, error) {
	if o.fresh {
		options, err := o.new.options(o.config)
		if err != nil {
			return nil, store.Ref{}, err
		}
		return o.repo.Create(ctx, options)
	}
	s, ref, err := o.openToDrive(ctx, o.session)
	return s, ref, o.perhapsNew(err)
}

// replacement is the folder that an existing session works in from now on, "" for
// the one that it has.
func (o *promptOptions) replacement() string {
	if o.fresh {
		return ""
	}
	return o.new.cwd
}

// perhapsNew points at --new where the text may have been given in the place of
// the session.
func (o *promptOptions) perhapsNew(err error) error {
	f, ok := errors.AsType[*failure](err)
	typed := f != nil && (f.tag == "session_not_found" || f.tag == "usage")
	if !ok || !typed || len(o.input.words) > 0 && !strings.Contains(o.session, " ") {
		return err
	}
	return f.withHint("a text goes after the session; `drover prompt --new TEXT` begins a session with it, `drover list` shows those there are")
}

// request reads what to send.
func (o *promptOptions) request() (engine.Request, error) {
	setters, err := o.laneFlags.configure()
	if err != nil {
		return engine.Request{}, err
	}
	r := engine.Request{OperationID: o.operationID, Configure: setters}
	if o.resource.given() {
		m, err := o.resource.message(&o.base, &o.input)
		r.Messages = []message.Message{m}
		return r, err
	}
	c, err := o.input.read(o.out)
	if err != nil && !o.fresh && o.out.inTTY {
		err = o.perhapsNew(err)
	}
	r.Text, r.Images, r.Messages = c.text, c.images, c.messages
	return r, err
}
