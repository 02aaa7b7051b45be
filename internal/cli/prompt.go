package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

type promptOptions struct {
	base
	models      func() (effect.Models, error)
	session     string
	fresh       bool // make the session first
	new         newSession
	laneFlags   laneFlags
	lane        string
	words       []string
	message     string
	operationID string
	detach      bool
	deadline    int64 // Unix ms, 0 for none
	noWait      bool
}

func newPromptCmd(f *factory, runF func(context.Context, *promptOptions) error) *cobra.Command {
	if runF == nil {
		runF = runPrompt
	}
	o := &promptOptions{models: f.models}
	var deadline string
	cmd := &cobra.Command{
		Use:   "prompt SESSION [TEXT...]",
		Short: "Send a message and drive the run to its end",
		Long: `Send a message to a session and drive the run that answers it to its end. The
text is the arguments joined by blanks, or stdin when it is - or left out.

The message is durable before the model is asked: whatever ends this process,
"drover drive SESSION" goes on from where it stood. With --new the first argument
is text too: a session is made and its id is printed on stderr.` +
			exitHelp(exitOK, exitFailed, exitUsage, exitNotFound, exitCorrupt, exitIO, exitVersion, exitRefused,
				exitAborted, exitLocked, exitLater, exitInt, exitTerm),
		ValidArgsFunction: completeSession(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := o.target(f, cmd, args); err != nil {
				return err
			}
			if o.base, err = f.base("prompt"); err != nil {
				return err
			}
			if deadline != "" {
				if o.deadline, err = parseWhen("--deadline", deadline, f.now(), 1); err != nil {
					return err
				}
			}
			return runF(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.fresh, "new", false, "make a new session for the message")
	o.new.bind(cmd)
	o.laneFlags.bind(cmd)
	flags.StringVar(&o.lane, "lane", store.MainLane, "the `LANE` to send to")
	flags.StringVar(&o.message, "message", "", "send a whole message, or an array of them, as `JSON` (- for stdin) instead of text")
	flags.StringVar(&o.operationID, "operation-id", "", "a fresh `UUID` (version 7) for the run; repeating it does not run it twice")
	flags.BoolVar(&o.detach, "detach", false, "only accept the run and leave it to `drover drive`")
	flags.StringVar(&deadline, "deadline", "", "stop at a safe point at `T`, a duration or an instant")
	flags.BoolVar(&o.noWait, "no-wait-retry", false, "end with 75 instead of waiting for a retry")
	return cmd
}

// target sorts the arguments into session and text and refuses flags that do not
// go together.
func (o *promptOptions) target(f *factory, cmd *cobra.Command, args []string) (err error) {
	if o.fresh {
		o.words = args
	} else {
		if name := o.new.given(); name != "" {
			return usagef("--%s goes with --new only", name)
		}
		if o.session, o.words, err = sessionArg(f, args); err != nil {
			return err
		}
	}
	if cmd.Flags().Changed("message") && len(o.words) > 0 {
		return usagef("--message and TEXT exclude each other")
	}
	if o.operationID != "" {
		if _, err := store.IDTime(o.operationID); err != nil {
			return usagef("--operation-id: %v", err)
		}
	}
	if o.lane == "" {
		return usagef("--lane needs a name")
	}
	return nil
}

func runPrompt(ctx context.Context, o *promptOptions) error {
	request, err := o.request()
	if err != nil {
		return err
	}
	models, err := o.models()
	if err != nil {
		return err
	}
	s, ref, err := o.open(ctx)
	if err != nil {
		return err
	}
	options, err := o.config.harnessOptions(s, models, o.now)
	if err != nil {
		return firstOf(err, s.Close())
	}
	placed := false
	ctx, cancel := withDeadline(ctx, o.deadline, o.now())
	defer cancel()
	err = withHarness(ctx, options, func(h *engine.Harness) error {
		return o.run(ctx, h, ref, request, &placed)
	})
	if o.fresh && !placed && refused(err) {
		// Nothing is left of a session whose first message was refused.
		return firstOf(err, o.repo.Delete(context.WithoutCancel(ctx), ref))
	}
	return err
}

func (o *promptOptions) open(ctx context.Context) (*store.Session, store.Ref, error) {
	if o.fresh {
		options, err := o.new.options(o.config)
		if err != nil {
			return nil, store.Ref{}, err
		}
		return o.repo.Create(ctx, options)
	}
	return o.openSession(ctx, o.session)
}

// run accepts the request and drives it; placed is set once it is durable.
func (o *promptOptions) run(ctx context.Context, h *engine.Harness, ref store.Ref, request engine.Request, placed *bool) error {
	lane, err := h.Lane(o.lane)
	if err != nil {
		return err
	}
	follow := newFollower(o.out, o.lane)
	defer follow.watch(h)()
	admission, err := o.accept(ctx, lane, request)
	if err != nil {
		return err
	}
	*placed = true
	if o.fresh {
		o.out.announce(ref.ID)
	}
	if o.detach {
		return o.admitted(ref, admission)
	}
	d, err := lane.Drive(ctx, engine.DriveOptions{OperationID: admission.OperationID, Deadline: o.deadline, WaitForRetry: !o.noWait})
	d, err = ended(ctx, ref.ID, o.lane, admission.OperationID, d, err)
	follow.endLine()
	return o.answer(err, lane, ref, admission, d, follow)
}

// accept makes the request durable. An operation id that the lane knows is not
// accepted again: the command may be repeated until it has its answer.
func (o *promptOptions) accept(ctx context.Context, lane *engine.Lane, request engine.Request) (engine.Admission, error) {
	if request.OperationID == "" {
		return lane.Accept(ctx, request)
	}
	info, err := lane.InspectExecution(ctx)
	if err != nil {
		return engine.Admission{}, err
	}
	if c := info.Current; c != nil && c.ID == request.OperationID {
		return engine.Admission{OperationID: c.ID, Kind: c.Kind, StartedAt: c.StartedAt}, nil
	}
	if last := info.LastResult; last != nil && last.OperationID == request.OperationID {
		minted, err := store.IDTime(last.OperationID)
		return engine.Admission{OperationID: last.OperationID, Kind: last.Kind, StartedAt: minted}, err
	}
	return lane.Accept(ctx, request)
}

func (o *promptOptions) admitted(ref store.Ref, a engine.Admission) error {
	return o.out.result(nil, func(d *object) {
		d.str("session", ref.ID)
		d.str("lane", o.lane)
		d.object("admission", func(d *object) {
			d.str("operationId", a.OperationID)
			d.str("kind", string(a.Kind))
			d.int("startedAt", a.StartedAt)
		})
	}, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, a.OperationID)
		return err
	})
}

func (o *promptOptions) answer(err error, lane *engine.Lane, ref store.Ref, a engine.Admission, d engine.DriveOutcome, follow *follower) error {
	var leaf *store.LeafID
	if d.Kind == engine.Waiting || d.Kind == engine.Yielded {
		// A session that the deadline has closed tells no leaf any more.
		if info, err := lane.InspectExecution(context.Background()); err == nil {
			leaf = &info.LeafID
		}
	}
	return o.out.result(err, func(doc *object) {
		doc.str("session", ref.ID)
		doc.str("lane", o.lane)
		doc.str("operationId", a.OperationID)
		runOutcome(doc, d, leaf)
		if d.Outcome != nil && d.Outcome.FinalMessage != nil {
			doc.str("text", d.Outcome.FinalMessage.Text())
		} else {
			doc.null("text")
		}
		doc.value("usage", follow.usage)
		writeNotBefore(doc, d)
	}, nil)
}

// request reads what to send.
func (o *promptOptions) request() (engine.Request, error) {
	setters, err := o.laneFlags.configure()
	if err != nil {
		return engine.Request{}, err
	}
	r := engine.Request{OperationID: o.operationID, Configure: setters}
	if o.message != "" {
		r.Messages, err = o.messages()
		return r, err
	}
	if len(o.words) > 0 && (len(o.words) > 1 || o.words[0] != "-") {
		r.Text = strings.Join(o.words, " ")
		return r, checkUTF8("the text", []byte(r.Text))
	}
	if o.out.inTTY {
		return r, usagef("what shall be sent? Give TEXT, or pipe it in")
	}
	text, err := o.stdin()
	r.Text = string(text)
	return r, err
}

// stdin reads text up to the size that a message may have.
func (o *promptOptions) stdin() ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(o.out.in, store.MaxPayload+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read stdin: %w", err)
	case len(text) > store.MaxPayload:
		return nil, &engine.InvalidMessage{Reason: fmt.Sprintf("stdin holds more than %d bytes", int64(store.MaxPayload))}
	}
	return text, checkUTF8("stdin", text)
}

func checkUTF8(what string, text []byte) error {
	if offset := rawjson.ValidUTF8(text); offset >= 0 {
		return usagef("%s is not UTF-8: byte %d is 0x%02x", what, offset, text[offset])
	}
	return nil
}

// messages reads --message: one message or an array of them.
func (o *promptOptions) messages() ([]message.Message, error) {
	raw, err := []byte(o.message), error(nil)
	if o.message == "-" {
		if raw, err = o.stdin(); err != nil {
			return nil, err
		}
	}
	if err := checkUTF8("--message", raw); err != nil {
		return nil, err
	}
	if syntax := rawjson.Valid(raw); syntax != nil {
		return nil, usagef("--message is no JSON: byte %d: %s", syntax.Offset, syntax.Msg)
	}
	switch rawjson.KindOf(raw) {
	case rawjson.Object:
		return []message.Message{raw}, nil
	case rawjson.Array:
	default:
		return nil, usagef("--message must be a message or an array of messages")
	}
	var all []message.Message
	for element, err := range rawjson.Elements(raw) {
		if err != nil {
			return nil, err
		}
		all = append(all, element)
	}
	return all, nil
}
