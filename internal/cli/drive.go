package cli

import (
	"context"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

type driveOptions struct {
	base
	session      string
	lane         string
	operation    string
	deadline     int64 // Unix ms, 0 for none
	waitRetry    bool
	pollDeferred bool
	passes       int // 0: until settled
	explain      bool
	manual       bool
	stopBefore   stopPoint // kind "" is nowhere
	all          bool
	jobs         int
}

func newDriveCmd(f *factory, runF func(context.Context, *driveOptions) error) *cobra.Command {
	if runF == nil {
		runF = func(ctx context.Context, o *driveOptions) error {
			switch {
			case o.all:
				return runDriveAll(ctx, o)
			case o.explain:
				return runExplain(ctx, o)
			}
			return runDrive(ctx, o)
		}
	}
	o := &driveOptions{}
	var deadline, passes, stopBefore string
	cmd := &cobra.Command{
		Use:   "drive SESSION",
		Short: "Drive an open operation on from where it stands",
		Long: `Drive the open operation of a session's lane on from where it stands, one pass:
until it settles, has to wait, or reaches the deadline. A request that was under
way when its process died is not repeated silently: its answer is recorded as an
error with what had arrived, and the retry policy decides.

With --explain nothing is driven: it says what a drive would do next, and which
effects it would repeat. With --manual every step waits for a line on stdin: peek,
step, run, abort or quit. With --stop-before the drive ends, as if it had been
killed, before the named step; "drover help breakpoints" lists them.

With --all drive every lane of the repository that has an open operation and
whose session nobody owns; what is owned is skipped and counted. It ends with 0 when
all completed, with 75 when some have to wait and none failed, and after a failure
with the code that all lanes share, or 3. --quiet hides waits, but for those that do
not end before you do something, as for a key that is missing or refused. In the
JSON .totals.nextWake is when the next wait is over, in Unix milliseconds, or null;
"settled" counts what came to its end, also by failing, and "failed" what could not
be driven.` +
			exitHelp(exitOK, exitFailed, exitUsage, exitPartial, exitNotFound, exitCorrupt, exitIO, exitVersion, exitRefused,
				exitAborted, exitLocked, exitLater, exitInt, exitTerm),
		Args:              maxArgs(1),
		ValidArgsFunction: completeSession(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := o.target(f, cmd, args); err != nil {
				return err
			}
			if o.passes, err = parsePasses(passes); err != nil {
				return err
			}
			if cmd.Flags().Changed("stop-before") {
				if o.stopBefore, err = parseStopPoint(stopBefore); err != nil {
					return err
				}
			}
			base := f.runningBase
			if o.explain {
				base = f.base // it opens nothing
			}
			if o.base, err = base("drive"); err != nil {
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
	flags.StringVar(&o.lane, "lane", store.MainLane, "the `LANE` to drive")
	flags.StringVar(&o.operation, "operation", "", "drive only the operation with this `ID`")
	flags.StringVar(&deadline, "deadline", "", "stop at a safe point at `T`, a duration or an instant")
	flags.BoolVar(&o.waitRetry, "wait-retry", false, "wait here for retries instead of ending with 75")
	flags.BoolVar(&o.pollDeferred, "poll-deferred", false, "ask for a deferred answer at once; with --all when it is due")
	flags.BoolVar(&o.explain, "explain", false, "say what a drive would do, and do nothing")
	flags.BoolVar(&o.manual, "manual", false, "wait for a command on stdin before every step")
	flags.StringVar(&stopBefore, "stop-before", "", "end before the first, or N-th, step of a kind, as `KIND[#N]`")
	flags.StringVar(&passes, "passes", "1", "how many passes: `N` or until-settled")
	flags.BoolVar(&o.all, "all", false, "drive every open operation of the repository")
	flags.IntVar(&o.jobs, "jobs", 8, "with --all, at most `N` sessions at a time")
	return cmd
}

func (o *driveOptions) target(f *factory, cmd *cobra.Command, args []string) (err error) {
	var ways []string
	for _, name := range []string{"all", "explain", "manual", "stop-before"} {
		if cmd.Flags().Changed(name) {
			ways = append(ways, "--"+name)
		}
	}
	if len(ways) > 1 {
		return usagef("%s and %s exclude each other", ways[0], ways[1])
	}
	if !o.all {
		if cmd.Flags().Changed("jobs") {
			return usagef("--jobs goes with --all only")
		}
		o.session, _, err = sessionArg(f, args)
		return err
	}
	switch {
	case len(args) > 0:
		return usagef("--all and SESSION exclude each other")
	case cmd.Flags().Changed("lane"), o.operation != "":
		return usagef("--all drives every lane: --lane and --operation go with a SESSION")
	case o.jobs < 1:
		return usagef("--jobs must be 1 or more")
	}
	return nil
}

// parsePasses reads --passes; 0 stands for until-settled.
func parsePasses(s string) (int, error) {
	if s == "until-settled" {
		return 0, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, usagef("--passes %q: want a number of 1 or more, or until-settled", escapeLine(s))
	}
	return n, nil
}

func runDrive(ctx context.Context, o *driveOptions) error {
	if err := o.checkConfigured(); err != nil {
		return err
	}
	s, ref, err := o.openToDrive(ctx, o.session)
	if err != nil {
		return err
	}
	options, err := o.harnessOptions(ctx, s)
	if err != nil {
		return firstOf(err, s.Close())
	}
	options.Manual = o.stepwise()
	ctx, cancel := withDeadline(ctx, o.deadline, o.now())
	defer cancel()
	return o.engageWith(ctx, ref, options, func(e *engaged) error { return o.run(ctx, e, ref) })
}

// stepwise drives stop at breakpoints.
func (o *driveOptions) stepwise() bool { return o.manual || o.stopBefore.kind != "" }

func (o *driveOptions) run(ctx context.Context, e *engaged, ref store.Ref) error {
	lane, err := e.Lane(o.lane)
	if err != nil {
		return err
	}
	id, err := o.current(ctx, lane)
	if err != nil {
		return err
	}
	at := pursuit{ref.ID, o.lane, id, o.namingLane(ref, o.lane)}
	follow := newFollower(o.out, o.lane)
	if !o.manual || o.out.format == formatNDJSON {
		defer follow.watch(e.Harness)() // text would run into the actions
	}
	defer e.server.Driving(o.lane)()
	var d engine.DriveOutcome
	if o.stepwise() {
		var left *effect.Action
		if d, left, err = o.driveStepwise(ctx, e, lane, at); left != nil && err == nil {
			follow.endLine()
			return o.answerLeft(ref, id, d, *left)
		}
	} else {
		d, err = o.drivePasses(ctx, lane, at)
	}
	return o.out.driven(ctx, at, d, err, follow)
}

// pursuit is the operation that a command drives on. A hint names its place as at.
type pursuit struct{ session, lane, operation, at string }

// place tells it from the other lanes of a repository.
func (p pursuit) place() string { return p.session + " " + p.lane }

// driven tells how a drive ended.
func (p *printer) driven(ctx context.Context, at pursuit, d engine.DriveOutcome, err error, follow *follower) error {
	d, err = ended(ctx, at, d, err)
	follow.endLine()
	if d.Kind == "" && err != nil && !cutShort(err) {
		return err
	}
	return p.result(err, func(doc *object) {
		doc.str("session", at.session)
		doc.str("lane", at.lane)
		writeDrive(doc, at.operation, d)
	}, func(w io.Writer) error { return settledText(w, p, d, follow) })
}

// current is the operation to drive. On an idle lane only the latest one that
// ended can be named: its outcome is told again.
func (o *driveOptions) current(ctx context.Context, lane *engine.Lane) (string, error) {
	info, err := lane.InspectExecution(ctx)
	if err != nil {
		return "", err
	}
	switch {
	case info.Current != nil && o.operation == "":
		return info.Current.ID, nil
	case info.Current != nil:
		return o.operation, nil
	case o.operation != "" && info.LastResult != nil && info.LastResult.OperationID == o.operation:
		return o.operation, nil
	}
	return "", &engine.NothingToResume{Lane: lane.Name()}
}

// drivePasses drives one pass after another. What has to be waited for between
// two of them is waited for here.
func (o *driveOptions) drivePasses(ctx context.Context, lane *engine.Lane, at pursuit) (engine.DriveOutcome, error) {
	options := engine.DriveOptions{OperationID: at.operation, Deadline: o.deadline, WaitForRetry: o.waitRetry, PollDeferred: o.pollDeferred}
	var told message.ErrorInfo
	for pass := 1; ; pass++ {
		d, err := lane.Drive(ctx, options)
		if err != nil || pass == o.passes || !o.goesOn(d) {
			return d, err
		}
		if d.PollFailed.Known && d.PollFailed != told {
			told = d.PollFailed
			o.tellWait(at, d)
		}
		if err := pause(ctx, time.Duration(*d.NotBefore-o.now())*time.Millisecond); err != nil {
			return d, err
		}
	}
}

// tellWait says why a pass has to be followed by another one.
func (o *driveOptions) tellWait(at pursuit, d engine.DriveOutcome) {
	tell := o.out.note
	if stuck(d) {
		tell = o.out.alert
	}
	tell("%s: %s", escapeLine(at.place()), escapeLine(waitMessage(d)))
}

// goesOn tells whether another pass can do more than this one once its wait is
// over.
func (o *driveOptions) goesOn(d engine.DriveOutcome) bool {
	waits := d.Kind == engine.Waiting && (d.Reason == engine.WaitRetry || d.Reason == engine.WaitDeferred && o.pollDeferred)
	return waits && d.NotBefore != nil && (o.deadline == 0 || *d.NotBefore <= o.deadline)
}

// writeDrive writes the DriveOutcome of §5.1; a pass that a signal cut short
// has none.
func writeDrive(doc *object, id string, d engine.DriveOutcome) {
	if d.Kind == "" {
		doc.str("operationId", id)
		return
	}
	raw, err := d.AppendJSON(nil)
	doc.fail(err)
	doc.members(raw)
	if d.NotBefore == nil {
		writeNotBefore(doc, d)
	}
}

// settledText prints the answer of an operation that had settled before, and
// what a compaction or navigation came to.
func settledText(w io.Writer, p *printer, d engine.DriveOutcome, follow *follower) error {
	if follow.any || d.Outcome == nil || d.Outcome.FinalMessage == nil {
		return structuralText(w, d)
	}
	text := d.Outcome.FinalMessage.Text()
	if text == "" {
		return nil
	}
	if p.outTTY {
		text = escapeText(text)
	}
	_, err := io.WriteString(w, plainText(text)+"\n")
	return err
}

// cutShort reports an error that a signal caused.
func cutShort(err error) bool {
	f := explain(err)
	return f != nil && f.tag == "interrupted"
}
